import { describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { asking, newThread, parseFrames, send, sendJson, streamRun } from "../../support/http.ts";

interface Message {
  readonly type: string;
  readonly content: string;
  readonly status?: string;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly { readonly id: string; readonly name: string }[];
  readonly additional_kwargs: Readonly<Record<string, unknown>>;
}
interface Values {
  readonly messages: readonly Message[];
  readonly delegations?: readonly { readonly id: string; readonly status: string; readonly result_brief?: string }[];
}
interface EventRow {
  readonly seq: number;
  readonly event_type: string;
  readonly content: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Long enough to be met in the middle on a slow machine, within the shell's own bound. */
const SLOW = 'call bash {"command": "echo begun > begun.txt; sleep 15; echo done"}';
const MODES = { stream_mode: ["values", "custom"] };

async function start(threadId: string, script: string): Promise<string> {
  return (await sendJson<{ run_id: string }>("POST", `/threads/${threadId}/runs`, asking(script, MODES))).run_id;
}

function stateOf(threadId: string): Promise<{ values: Values; next: string[] }> {
  return sendJson("GET", `/threads/${threadId}/state`);
}

function eventsOf(threadId: string, runId: string): Promise<EventRow[]> {
  return sendJson("GET", `/threads/${threadId}/runs/${runId}/events`);
}

async function customOf(threadId: string, runId: string): Promise<{ type: string; task_id: string }[]> {
  const text = await (await send("GET", `/threads/${threadId}/runs/${runId}/stream`)).text();
  return parseFrames(text)
    .filter((frame) => frame.event === "custom")
    .map((frame) => frame.data as { type: string; task_id: string });
}

/** Until the calls of the lead are written, so that a tool is at work. */
function untilCalled(threadId: string, count: number): Promise<Values> {
  return eventually(
    async () => (await stateOf(threadId)).values,
    (values) => (values.messages ?? []).flatMap((message) => message.tool_calls ?? []).length >= count,
  );
}

/** Until so many children have begun to work. */
async function untilStepped(threadId: string, runId: string, children: number): Promise<string[]> {
  const rows = await eventually(
    () => eventsOf(threadId, runId),
    (seen) => new Set(seen.filter((row) => row.event_type === "subagent.step").map(taskOf)).size >= children,
  );
  return [...new Set(rows.filter((row) => row.event_type === "subagent.start").map(taskOf))];
}

const taskOf = (row: EventRow) => String(row.metadata["task_id"]);

function expectNothingDangling({ messages }: Values): void {
  const calls = messages.flatMap((message) => message.tool_calls ?? []).map(({ id }) => id);
  const results = messages.filter((message) => message.type === "tool").map((message) => message.tool_call_id!);
  expect(results.toSorted()).toEqual(calls.toSorted());
}

/** The scripted model refuses a request with a dangling call, so the next run is the proof. */
async function expectUsable(threadId: string): Promise<void> {
  const frames = await streamRun(threadId, asking("@ say usable"));
  expect((frames.at(-1)!.data as Values).messages.at(-1)!.content).toBe("usable");
}

describe("cancel of a run", () => {
  it("in the middle of a tool: the call gets a cancelled result, the run is interrupted, the thread goes on", async () => {
    const threadId = await newThread();
    const runId = await start(threadId, `@ ${SLOW}\n@ say never`);
    await untilCalled(threadId, 1);
    const before = Date.now();
    expect((await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`)).status).toBe(204);
    // The signal reached the shell: nobody waited for its sleep.
    expect(Date.now() - before).toBeLessThan(8_000);
    const { values, next } = await stateOf(threadId);
    expectNothingDangling(values);
    expect(values.messages.at(-1)).toMatchObject({ type: "tool", status: "error" });
    expect(values.messages.at(-1)!.content).toMatch(/cancel/i);
    expect(next).not.toContain("tools");
    const events = await eventsOf(threadId, runId);
    expect(events.map((row) => row.event_type)).toEqual([
      "run.start",
      "llm.human.input",
      "llm.ai.response",
      "llm.tool.result",
      "run.end",
    ]);
    expect(events.at(-1)!.content).toMatchObject({ status: "interrupted" });
    // What a cancelled call had written is not kept: its files commit with its result.
    expect((await send("GET", `/threads/${threadId}/files/begun.txt`)).status).toBe(404);
    await expectUsable(threadId);
  });

  it("in the middle of a delegation: ledger entry cancelled, one subagent.end, task_cancelled told, no dangling call", async () => {
    const threadId = await newThread();
    const script = `@ delegate general-purpose :: slow work :: <<'CHILD'\n@ call ls {"path": "/workspace"}\n@ ${SLOW}\n@ say never\nCHILD\n@ say never`;
    const runId = await start(threadId, script);
    const [taskId] = await untilStepped(threadId, runId, 1);
    expect((await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`)).status).toBe(204);
    const { values } = await stateOf(threadId);
    expectNothingDangling(values);
    expect(values.delegations).toMatchObject([{ id: taskId, status: "cancelled" }]);
    expect(values.messages.at(-1)).toMatchObject({
      type: "tool",
      status: "error",
      additional_kwargs: { subagent_status: "cancelled" },
    });
    const events = await eventsOf(threadId, runId);
    expect(events.map((row) => row.seq)).toEqual(events.map((_, index) => index + 1));
    const ends = events.filter((row) => row.event_type === "subagent.end");
    expect(ends).toMatchObject([{ content: { status: "cancelled" }, metadata: { task_id: taskId } }]);
    expect(events.at(-1)).toMatchObject({ event_type: "run.end", content: { status: "interrupted" } });
    const told = (await customOf(threadId, runId)).map((event) => event.type);
    expect(told.filter((type) => type === "task_cancelled")).toHaveLength(1);
    expect(told.at(-1)).toBe("task_cancelled");
    await expectUsable(threadId);
  });

  it("leaves no path held by what a child's cut call had staged", async () => {
    const threadId = await newThread();
    await send("PUT", `/threads/${threadId}/files/shared.txt`, "old");
    const edit = 'call bash {"command": "sed -i s/old/cut/ shared.txt; sleep 15"}';
    const mark = 'call bash {"command": "sleep 0.5; echo the edit is staged"}';
    const script = `@ delegate general-purpose :: edits :: <<'CHILD'\n@ & ${edit}\n@ & ${mark}\n@ say never\nCHILD\n@ say never`;
    const runId = await start(threadId, script);
    await eventually(
      () => eventsOf(threadId, runId),
      (rows) => rows.filter((row) => row.event_type === "subagent.step").length >= 2,
    );
    await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`);
    const again = '@ call str_replace {"path": "shared.txt", "old_str": "old", "new_str": "new"}\n@ say {{result:1}}';
    await streamRun(threadId, asking(again));
    expect(await (await send("GET", `/threads/${threadId}/files/shared.txt`)).text()).toContain("new");
  });

  it("keeps the result of a call that had finished beside the one that is cancelled (P2)", async () => {
    const threadId = await newThread();
    const runId = await start(threadId, `@ & call bash {"command": "echo quick"}\n@ & ${SLOW}\n@ say never`);
    await eventually(
      () => eventsOf(threadId, runId),
      (rows) => rows.some((row) => row.event_type === "llm.tool.result"),
    );
    await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`);
    const { values } = await stateOf(threadId);
    expectNothingDangling(values);
    const [quick, slow] = values.messages.filter((message) => message.type === "tool");
    expect(quick).toMatchObject({ status: "success", content: expect.stringContaining("quick") });
    expect(slow).toMatchObject({ status: "error" });
    await expectUsable(threadId);
  });

  it("joined after the cancel, gives the settled state", async () => {
    const threadId = await newThread();
    const runId = await start(threadId, `@ ${SLOW}\n@ say never`);
    await untilCalled(threadId, 1);
    await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`);
    const joined = await sendJson<Values>("GET", `/threads/${threadId}/runs/${runId}/join`);
    expect(joined).toEqual((await stateOf(threadId)).values);
  });
});

describe("cancel of one delegation", () => {
  it("ends that child alone; its sibling and the run complete, and the lead reads that it was cancelled", async () => {
    const threadId = await newThread();
    const child = (text: string, step: string) =>
      `@ & delegate general-purpose :: ${text} :: <<'CHILD'\n@ call ls {"path": "/workspace"}\n@ ${step}\n@ say ${text} answer\nCHILD`;
    const runId = await start(
      threadId,
      `${child("slow", SLOW)}\n${child("quick", 'call bash {"command": "sleep 0.2"}')}\n@ say synthesis`,
    );
    await untilStepped(threadId, runId, 2);
    const calls = (await stateOf(threadId)).values.messages.flatMap((message) => message.tool_calls ?? []);
    const slowId = calls[0]!.id;
    const path = `/threads/${threadId}/runs/${runId}/tasks/${slowId}/cancel`;
    expect((await send("POST", path)).status).toBe(202);
    const values = await sendJson<Values>("GET", `/threads/${threadId}/runs/${runId}/join`);
    expect(values.messages.at(-1)!.content).toBe("synthesis");
    expect(values.delegations!.map(({ status }) => status)).toEqual(["cancelled", "completed"]);
    const [slow, quick] = values.messages.filter((message) => message.type === "tool");
    expect(slow).toMatchObject({ status: "error", additional_kwargs: { subagent_status: "cancelled" } });
    expect(quick!.content).toContain("quick answer");
    expect((await sendJson<{ status: string }>("GET", `/threads/${threadId}/runs/${runId}`)).status).toBe("success");
    const custom = (await customOf(threadId, runId)).filter((event) => event.task_id === slowId);
    expect(custom.at(-1)!.type).toBe("task_cancelled");
    // It has ended: there is nothing left to cancel.
    expect((await send("POST", path)).status).toBe(404);
    expect((await send("POST", `/threads/${threadId}/runs/${runId}/tasks/call_nobody/cancel`)).status).toBe(404);
  });

  it("leaves no path held by what its cut call had staged: the same run edits the file", async () => {
    const threadId = await newThread();
    await send("PUT", `/threads/${threadId}/files/shared.txt`, "old");
    const edit = 'call bash {"command": "sed -i s/old/cut/ shared.txt; sleep 15"}';
    const mark = 'call bash {"command": "sleep 0.5; echo the edit is staged"}';
    const runId = await start(
      threadId,
      `@ delegate general-purpose :: edits :: <<'CHILD'\n@ & ${edit}\n@ & ${mark}\n@ say never\nCHILD\n@ call str_replace {"path": "shared.txt", "old_str": "old", "new_str": "new"}\n@ say {{result:last}}`,
    );
    const rows = await eventually(
      () => eventsOf(threadId, runId),
      (seen) => seen.filter((row) => row.event_type === "subagent.step").length >= 2,
    );
    const taskId = taskOf(rows.find((row) => row.event_type === "subagent.start")!);
    expect((await send("POST", `/threads/${threadId}/runs/${runId}/tasks/${taskId}/cancel`)).status).toBe(202);
    const values = await sendJson<Values>("GET", `/threads/${threadId}/runs/${runId}/join`);
    expect(values.messages.findLast((message) => message.type === "tool")).toMatchObject({ status: "success" });
    expect(await (await send("GET", `/threads/${threadId}/files/shared.txt`)).text()).toContain("new");
  });
});
