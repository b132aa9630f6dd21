/**
 * One run over a real HTTP model server: two rounds, three children. One is stopped by its turn cap, one waits for a slot
 * and is cancelled, one fails by its provider; the whole of Deputy is killed while the first is in its second turn.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { DeputyServer, eventually } from "../support/deputy-server.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { type WireRequest, wireText } from "../support/model-wire.ts";
import { LEAD, type WireMessage } from "../support/sdk.ts";

/** The name in the configuration, which delegations carry, and the provider's, which usage does. */
const MODEL = "openai";
const SERVED_MODEL = "served-model";

/** Two turns are all it has, and it asks for a third. */
const CAPPED = [
  "Look twice.",
  "@ usage 11 2",
  "@ & say first finding",
  '@ & call bash {"command": "echo once >> looked.txt"}',
  "@ delay 400",
  '@ & call bash {"command": "echo twice >> looked.txt"}',
  "@ & raw bash {not json at all, sent slowly, word by word, so that there is time to kill}",
  "@ say never said",
].join("\n");
const QUEUED = "Wait for a slot.\n@ say never asked";
const FAILING = ["Ask a broken provider.", "@ fail 503", "@ say never answered"].join("\n");

const SCRIPT = [
  "```script",
  "usage 100 7",
  `& delegate short :: Look twice :: <<'CAPPED'`,
  CAPPED,
  "CAPPED",
  `& delegate general-purpose :: Wait for a slot :: <<'QUEUED'`,
  QUEUED,
  "QUEUED",
  `delegate general-purpose :: Ask a broken provider :: <<'FAILING'`,
  FAILING,
  "FAILING",
  "say two of three did not work",
  "```",
].join("\n");

/** Holds one of the two slots until the second child has been cancelled. */
const SLOT_HOLDER = "Hold a slot.\n@ delay 10000\n@ say one two three four five six";

const OVERRIDES = {
  subagents: { custom_agents: { short: { description: "Has two turns.", system_prompt: "Be brief.", max_turns: 2 } } },
  subagent_runtime: { max_running: 2 },
  llm_call: { retry_max_attempts: 2, retry_base_delay_ms: 1, retry_cap_delay_ms: 1 },
  runtime: { keep_alive_seconds: 1 },
};

interface LedgerEntry {
  readonly id: string;
  readonly run_id?: string;
  readonly description: string;
  readonly status: string;
  readonly stop_reason?: string;
  readonly result_brief?: string;
}
interface State {
  readonly values: { readonly messages: readonly WireMessage[]; readonly delegations?: readonly LedgerEntry[] };
}
interface EventRow {
  readonly seq: number;
  readonly event_type: string;
  readonly content: Readonly<Record<string, unknown>>;
  readonly metadata: { readonly task_id?: string };
}
interface Run {
  readonly status: string;
  readonly usage?: readonly { caller: string; model_name: string; reported?: object; estimated?: object }[];
}

let models: ModelServer;
let deputy: DeputyServer;

beforeAll(async () => {
  models = await startModelServer();
  deputy = new DeputyServer({
    env: {
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: models.url,
      OPENAI_MODEL: SERVED_MODEL,
      DEPUTY_OVERRIDES: JSON.stringify(OVERRIDES),
    },
  });
  await deputy.start();
});
afterAll(async () => {
  await deputy.close();
  await models.close();
});

/** Requests of the child whose prompt starts so. */
const requestsOf = (prompt: string): readonly WireRequest[] =>
  models.requests.filter((request) => request.messages.some((each) => wireText(each).startsWith(prompt)));
const turnOf = (request: WireRequest) => request.messages.filter(({ role }) => role === "assistant").length + 1;

const state = (threadId: string) => deputy.json<State>("GET", `/threads/${threadId}/state`);
const ledger = async (threadId: string) => (await state(threadId)).values.delegations ?? [];
async function events(threadId: string, runId: string): Promise<EventRow[]> {
  const page = await deputy.json<{ data: EventRow[] } | EventRow[]>(
    "GET",
    `/threads/${threadId}/runs/${runId}/events?limit=1000`,
  );
  return Array.isArray(page) ? page : page.data;
}

it("two rounds, three children, a turn cap, a cancelled wait, a broken provider and a SIGKILL: each told once, nothing redone, slots free (P1, P2, P5)", async () => {
  const { thread_id: threadId } = await deputy.json<{ thread_id: string }>("POST", "/threads", {});
  await deputy.json("POST", `/threads/${threadId}/batches`, {
    title: "holder",
    subagent_type: "general-purpose",
    items: [{ key: "only", prompt: SLOT_HOLDER }],
  });
  await eventually(
    () => models.requests.length,
    (seen) => seen > 0,
    20_000,
  );
  const { run_id: runId } = await deputy.json<{ run_id: string }>("POST", `/threads/${threadId}/runs`, {
    assistant_id: LEAD,
    input: { messages: [{ type: "human", content: SCRIPT }] },
  });

  // Before: the first child has taken a turn and is in its second, the other waits and has asked no model.
  await eventually(
    () => requestsOf("Look twice").some((request) => turnOf(request) === 2),
    (isInSecond) => isInSecond,
    20_000,
  );
  const accepted = (await events(threadId, runId)).filter((event) => event.event_type === "subagent.start");
  expect(accepted.map(({ content }) => String(content["description"])).toSorted()).toEqual([
    "Look twice",
    "Wait for a slot",
  ]);
  const waiting = accepted.find(({ content }) => content["description"] === "Wait for a slot")!.metadata.task_id!;
  const cancelled = await fetch(`${deputy.url}/threads/${threadId}/runs/${runId}/tasks/${waiting}/cancel`, {
    method: "POST",
  });
  expect(cancelled.status).toBe(202);
  await deputy.kill();
  expect(deputy.query<{ status: string }>(`SELECT status FROM runs WHERE run_id = '${runId}'`)).toEqual([
    { status: "running" },
  ]);

  await deputy.start();
  await eventually(
    () => deputy.query<{ status: string }>(`SELECT status FROM runs WHERE run_id = '${runId}'`)[0]?.status,
    (status) => status !== "running",
    60_000,
  );

  // After: the ledger.
  const entries = await ledger(threadId);
  expect(
    entries.map(({ description, status, stop_reason, run_id }) => [description, status, stop_reason, run_id]),
  ).toEqual([
    ["Look twice", "completed", "turn_capped", runId],
    ["Wait for a slot", "cancelled", undefined, runId],
    ["Ask a broken provider", "failed", undefined, runId],
  ]);
  expect(entries[0]!.result_brief).toBe("first finding");

  // The lead's conversation: three results with their metadata, none of them a success but the capped one.
  const { messages } = (await state(threadId)).values;
  const results = messages.filter(({ type }) => type === "tool");
  expect(results.map(({ status, tool_call_id }) => [status, tool_call_id])).toEqual([
    ["success", entries[0]!.id],
    ["error", entries[1]!.id],
    ["error", entries[2]!.id],
  ]);
  expect(results[0]).toMatchObject({
    content: "Task Succeeded (capped: turn budget). Result: first finding",
    additional_kwargs: {
      subagent_status: "completed",
      subagent_stop_reason: "turn_capped",
      subagent_result_brief: "first finding",
      subagent_model_name: MODEL,
      subagent_token_usage: { input_tokens: 22, output_tokens: 4, total_tokens: 26 },
    },
  });
  expect(results[1]!.additional_kwargs).toMatchObject({ subagent_status: "cancelled" });
  expect(results[1]!.additional_kwargs).not.toHaveProperty("subagent_token_usage");
  expect(results[2]!.additional_kwargs).toMatchObject({ subagent_status: "failed", subagent_model_name: MODEL });
  expect(results[2]!.additional_kwargs).not.toHaveProperty("subagent_token_usage");
  expect(results[2]!.content).toMatch(/^Task failed\. Error: /);
  expect(messages.at(-1)).toMatchObject({ type: "ai", content: "two of three did not work" });

  // The log: gap-free, every child started and ended once, no step of the first told twice.
  const log = await events(threadId, runId);
  expect(log.map(({ seq }) => seq - log[0]!.seq)).toEqual(log.map((_, at) => at));
  const ends = log.filter(({ event_type }) => event_type === "subagent.end");
  expect(log.filter(({ event_type }) => event_type === "subagent.start")).toHaveLength(3);
  expect(new Map(ends.map(({ metadata, content }) => [metadata.task_id, content["status"]]))).toEqual(
    new Map(entries.map(({ id, status }) => [id, status])),
  );
  expect(ends).toHaveLength(3);
  const steps = log.filter(
    ({ event_type, metadata }) => event_type === "subagent.step" && metadata.task_id === entries[0]!.id,
  );
  // Two answers, the first one's result, and the two of the second's calls.
  expect(steps.map(({ content }) => content["kind"])).toEqual(["ai", "tool", "ai", "tool", "tool"]);

  // Nothing finished was redone, and nothing that waited or failed cost more than it had to.
  expect(requestsOf("Look twice").filter((request) => turnOf(request) === 1)).toHaveLength(1);
  expect(requestsOf("Look twice").every((request) => turnOf(request) <= 2)).toBe(true);
  expect(requestsOf("Wait for a slot")).toHaveLength(0);
  expect(requestsOf("Ask a broken provider")).toHaveLength(2);
  const looked = await (await fetch(`${deputy.url}/threads/${threadId}/files/looked.txt`)).text();
  expect(looked).toBe("once\ntwice\n");
  expect(models.violations).toEqual([]);

  // Usage: once, by caller and model.
  const run = await deputy.json<Run>("GET", `/threads/${threadId}/runs/${runId}`);
  expect(run.status).toBe("success");
  expect(
    run.usage?.map(({ caller, model_name, reported, estimated }) => [caller, model_name, reported, estimated]),
  ).toEqual([
    [LEAD, SERVED_MODEL, { answers: 3, input_tokens: 300, output_tokens: 21, total_tokens: 321 }, undefined],
    ["subagent:short", SERVED_MODEL, { answers: 2, input_tokens: 22, output_tokens: 4, total_tokens: 26 }, undefined],
  ]);

  // Slots: two children of a new run are asked at the same time.
  const pair = [
    "& delegate general-purpose :: Left :: @ say left done",
    "& delegate general-purpose :: Right :: @ say right done",
  ];
  const next = await deputy.json<{ messages: readonly WireMessage[] }>("POST", `/threads/${threadId}/runs/wait`, {
    assistant_id: LEAD,
    input: { messages: [{ type: "human", content: ["```script", ...pair, "say both", "```"].join("\n") }] },
  });
  expect(next.messages.slice(-3).map(({ content }) => content)).toEqual([
    "Task Succeeded. Result: left done",
    "Task Succeeded. Result: right done",
    "both",
  ]);
}, 120_000);
