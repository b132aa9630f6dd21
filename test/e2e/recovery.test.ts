import { afterAll, beforeAll, expect, it } from "vitest";
import { DeputyServer, eventually } from "../support/deputy-server.ts";

const RUNS = 10;
const STAGGER_MS = 100;

/** Each lead makes a mark, delegates three marks to a child, makes a last mark; every mark is one line in a file. */
const SCRIPT = [
  "```script",
  "delay 30",
  'call bash {"command": "echo lead-1 >> marks.txt; sleep 0.1"}',
  "delegate general-purpose :: three marks :: <<'CHILD'",
  "@ delay 30",
  '@ call bash {"command": "echo child-1 >> marks.txt; sleep 0.1"}',
  '@ call bash {"command": "echo child-2 >> marks.txt; sleep 0.1"}',
  '@ call bash {"command": "echo child-3 >> marks.txt; sleep 0.1"}',
  "@ say child done one two three four",
  "CHILD",
  'call bash {"command": "echo lead-2 >> marks.txt; sleep 0.1"}',
  "say all done one two three four five six",
  "```",
].join("\n");

const MARKS = ["lead-1", "child-1", "child-2", "child-3", "lead-2"];

interface EventRow {
  readonly seq: number;
  readonly event_type: string;
  readonly content: { kind?: string };
}

const deputy = new DeputyServer({ env: { DEPUTY_OVERRIDES: JSON.stringify({ runtime: { keep_alive_seconds: 1 } }) } });

beforeAll(() => deputy.start());
afterAll(() => deputy.close());

it("SIGKILL in the middle of ten runs: each ends as success by itself, every side effect once, no finished call repeated (P1, P2)", async () => {
  const started: { threadId: string; runId: string }[] = [];
  for (let index = 0; index < RUNS; index += 1) {
    const { thread_id: threadId } = await deputy.json<{ thread_id: string }>("POST", "/threads", {});
    const { run_id: runId } = await deputy.json<{ run_id: string }>("POST", `/threads/${threadId}/runs`, {
      assistant_id: "lead_agent",
      input: { messages: [{ type: "human", content: SCRIPT }] },
    });
    started.push({ threadId, runId });
    await new Promise((next) => {
      setTimeout(next, STAGGER_MS);
    });
  }
  await deputy.kill();
  const running = deputy.query<{ n: number }>("SELECT count(*) AS n FROM runs WHERE status = 'running'")[0]!.n;
  expect(running).toBeGreaterThan(0);

  // From here until every run has ended nothing is asked of any thread: the objects wake by their own alarms.
  await deputy.start();
  await eventually(
    () => deputy.query<{ status: string; n: number }>("SELECT status, count(*) AS n FROM runs GROUP BY status"),
    (rows) => rows.length === 1 && rows[0]!.status === "success" && rows[0]!.n === RUNS,
    60_000,
  );

  let recovered = 0;
  for (const { threadId, runId } of started) {
    const marks = await (await fetch(`${deputy.url}/threads/${threadId}/files/marks.txt`)).text();
    expect(marks.trim().split("\n")).toEqual(MARKS);
    const page = await deputy.json<EventRow[] | { data: EventRow[] }>(
      "GET",
      `/threads/${threadId}/runs/${runId}/events`,
    );
    const events = Array.isArray(page) ? page : page.data;
    expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
    const count = (type: string) => events.filter((event) => event.event_type === type).length;
    expect([count("run.start"), count("run.end"), count("subagent.start"), count("subagent.end")]).toEqual([
      1, 1, 1, 1,
    ]);
    // Four answers and three results of the child; a repeated inner call would be an eighth step.
    expect(count("subagent.step")).toBe(7);
    expect(count("llm.tool.result")).toBe(3);
    recovered += Math.min(1, count("run.recovered"));
    const run = await deputy.json<{ status: string }>("GET", `/threads/${threadId}/runs/${runId}`);
    expect(run.status).toBe("success");
  }
  expect(recovered).toBeGreaterThan(0);
});
