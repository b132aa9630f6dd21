import { env } from "cloudflare:test";
import { expect, inject, it } from "vitest";
import type { DeputyConfigInput } from "../../../src/config.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

const SECRET = "Bearer marker-secret";

interface Entry {
  readonly event: string;
  readonly details?: unknown;
}

/** Of connections made since the log had `from` entries. */
const agentLog = async (from = 0): Promise<Entry[]> => (await fetch(`${inject("acpAgent")}/log?from=${from}`)).json();

function configOf(query: string): DeputyConfigInput {
  const url = `${inject("acpAgent").replace("http", "ws")}/agent?${query}`;
  const remote = {
    description: "works elsewhere",
    provider: "acp" as const,
    acp: { url, headers: { authorization: SECRET }, cwd: "/srv" },
  };
  return { subagents: { custom_agents: { remote } } };
}

const planned = (plan: readonly object[]) => configOf(`plan=${encodeURIComponent(JSON.stringify(plan))}`);

const SCRIPT = "@ delegate remote :: look :: what is there\n@ say {{result:1}}";

async function answerOf(runtime: ThreadRuntime): Promise<string> {
  const { messages } = JSON.parse(await runtime.context.graphs.renderState(undefined)) as {
    messages: { content: string }[];
  };
  return messages.at(-1)!.content;
}

interface EventRow {
  readonly event_type: string;
  readonly content: string;
  readonly metadata: string;
}

const rowsOf = async (runId: string): Promise<EventRow[]> => {
  const query = "SELECT event_type, content, metadata FROM run_events WHERE run_id = ? ORDER BY seq";
  return (await env.DB.prepare(query).bind(runId).all<EventRow>()).results;
};

it("R158 a lead in its object delegates over a WebSocket: headers arrive, updates are steps, the secret is told nobody", async () => {
  await withWakes(async (thread) => {
    const from = (await agentLog()).length;
    const config = planned([{ says: "I look" }, { says: "a needle" }]);
    const reports: unknown[] = [];
    const runtime = await thread.create({ config, report: (...report) => void reports.push(report) });
    const { runId } = await startRun(runtime, SCRIPT);
    await runtime.context.live.get(runId)!.done;
    expect(await answerOf(runtime)).toContain("a needle");
    const log = await agentLog(from);
    expect(log.map(({ event }) => event).slice(0, 4)).toEqual(["connect", "initialize", "session/new", "prompt"]);
    expect(log[0]).toMatchObject({ details: { authorization: SECRET } });
    expect(log[3]).toMatchObject({ details: "what is there" });
    const rows = await eventually(
      () => rowsOf(runId),
      (all) => all.some(({ event_type }) => event_type === "run.end"),
    );
    const told = rows.filter(({ event_type }) => event_type.startsWith("subagent."));
    expect(told.map(({ event_type }) => event_type)).toEqual([
      "subagent.start",
      "subagent.step",
      "subagent.step",
      "subagent.step",
      "subagent.end",
    ]);
    const frames = thread.storage.sql.exec("SELECT * FROM frame_blocks").toArray();
    const state = await runtime.context.graphs.renderState(undefined);
    const runs = thread.storage.sql.exec("SELECT * FROM runs").toArray();
    const everything = JSON.stringify([rows, frames, state, reports, runs]);
    expect(everything).not.toMatch(/marker-secret|127\.0\.0\.1/);
  });
});

it("an agent that refuses the connection fails the delegation and says so, without its address", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create({ config: configOf("refuse") });
    const { runId } = await startRun(runtime, SCRIPT);
    await runtime.context.live.get(runId)!.done;
    const answer = await answerOf(runtime);
    expect(answer).toMatch(/'remote' could not be started: the agent refuses the connection with status 401/);
    expect(answer).not.toMatch(/marker-secret|127\.0\.0\.1/);
  });
});

it("R158 P1 a redirect is not followed: the headers are meant for one address", async () => {
  await withWakes(async (thread) => {
    const from = (await agentLog()).length;
    const runtime = await thread.create({ config: configOf("moved") });
    const { runId } = await startRun(runtime, SCRIPT);
    await runtime.context.live.get(runId)!.done;
    expect(await answerOf(runtime)).toMatch(/refuses the connection with status 302/);
    expect(await agentLog(from)).toEqual([]);
  });
});

it("R158 an agent that runs out of time is told to stop, and has a while to do so before its connection is closed", async () => {
  await withWakes(async (thread) => {
    const gate = crypto.randomUUID();
    const from = (await agentLog()).length;
    const { subagents } = planned([{ says: "begun" }, { holds: gate }]);
    const remote = { ...subagents!.custom_agents!["remote"]!, timeout_seconds: 1 };
    const runtime = await thread.create({ config: { subagents: { custom_agents: { remote } } } });
    const { runId } = await startRun(runtime, SCRIPT);
    await fetch(`${inject("acpAgent")}/reached?gate=${gate}`);
    await runtime.context.live.get(runId)!.done;
    expect(await answerOf(runtime)).toContain("timed out");
    const seen = await eventually(
      async () => await agentLog(from),
      (log) => log.some(({ event }) => event === "close"),
    );
    expect(seen.map(({ event }) => event).slice(-2)).toEqual(["cancel", "close"]);
    expect(seen.at(-1)).toMatchObject({ details: { code: 1000 } });
    await fetch(`${inject("acpAgent")}/open?gate=${gate}`);
  });
});

it("R158 P1 after a crash the agent is not asked again: the delegation is failed and says why", async () => {
  await withWakes(async (thread) => {
    const gate = crypto.randomUUID();
    const config = planned([{ says: "begun" }, { holds: gate }]);
    const from = (await agentLog()).length;
    const first = await thread.create({ config });
    const { runId } = await startRun(first, SCRIPT);
    await fetch(`${inject("acpAgent")}/reached?gate=${gate}`);
    const second = await thread.wake({ config });
    await second.context.live.get(runId)!.done;
    expect(await answerOf(second)).toMatch(/connection to the agent was lost.*not asked a second time/);
    const prompts = (await agentLog(from)).filter(({ event }) => event === "prompt");
    expect(prompts).toHaveLength(1);
    const rows = await eventually(
      () => rowsOf(runId),
      (all) => all.some(({ event_type }) => event_type === "subagent.end"),
    );
    const end = rows.find(({ event_type }) => event_type === "subagent.end");
    expect(JSON.parse(end!.content)).toMatchObject({ status: "failed" });
    await fetch(`${inject("acpAgent")}/open?gate=${gate}`);
  });
});

it("R158 a batch of an agent over acp has one attempt an item, and its stored definition has no header", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create({ config: configOf("") });
    const body = { title: "Look", subagent_type: "remote", items: [{ key: "a", prompt: "look" }] };
    const submitter = { submissionKey: null, role: "user" } as const;
    const twice = await runtime.batches.create({ ...body, max_attempts: 2 }, submitter);
    expect(twice).toMatchObject({ ok: false, error: { message: expect.stringContaining("the range is 1 to 1") } });
    const created = await runtime.batches.create(body, submitter);
    if (!created.ok) throw new Error(created.error.message);
    const { batch_id: batchId, max_attempts } = created.value.batch;
    expect(max_attempts).toBe(1);
    const stored = await env.DB.prepare("SELECT definition FROM batch_definitions WHERE batch_id = ?")
      .bind(batchId)
      .first();
    expect(JSON.stringify(stored)).toContain('\\"acp\\":{');
    expect(JSON.stringify(stored)).not.toContain("marker-secret");
  });
});
