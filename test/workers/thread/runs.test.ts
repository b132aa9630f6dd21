import { describe, expect, it } from "vitest";
import { asking, newThread, parseFrames, send, sendJson, streamRun } from "../../support/http.ts";

interface Message {
  readonly id: string;
  readonly type: string;
  readonly content: string;
}
interface Values {
  readonly messages: Message[];
}

describe("runs", () => {
  it("streams metadata, tokens and values of a one-turn run, and ends as success", async () => {
    const threadId = await newThread();
    const frames = await streamRun(
      threadId,
      asking("@ say one two three", { stream_mode: ["values", "messages-tuple"] }),
    );
    expect(frames[0]).toMatchObject({ event: "metadata", data: { attempt: 1 }, id: "1" });
    const last = frames.findLast((frame) => frame.event === "values")!.data as Values;
    expect(last.messages.map((message) => [message.type, message.content])).toEqual([
      ["human", "@ say one two three"],
      ["ai", "one two three"],
    ]);
    const tokens = frames.filter((frame) => frame.event === "messages").map((frame) => (frame.data as [Message])[0]);
    expect(
      tokens
        .filter((token) => token.type === "ai")
        .map((token) => token.content)
        .join(""),
    ).toBe("one two three");
    expect(new Set(tokens.map((token) => token.id))).toContain(last.messages[1]!.id);
    const [run] = await sendJson<{ status: string; run_id: string }[]>("GET", `/threads/${threadId}/runs`);
    expect(run).toMatchObject({ status: "success", run_id: (frames[0]!.data as { run_id: string }).run_id });
  });

  it("gives a plain-dict HTTP message one id: in its frame, over ten reads of state, in history (R185)", async () => {
    const threadId = await newThread();
    const frames = await streamRun(threadId, asking("@ say hi"));
    const id = (frames.find((frame) => frame.event === "values")!.data as Values).messages[0]!.id;
    for (let read = 0; read < 10; read += 1) {
      const state = await sendJson<{ values: Values }>("GET", `/threads/${threadId}/state`);
      expect(state.values.messages[0]!.id).toBe(id);
    }
    const history = await sendJson<{ values: Partial<Values> }[]>("POST", `/threads/${threadId}/history`, {});
    const ids = new Set(history.flatMap((state) => state.values.messages?.[0]?.id ?? []));
    expect([...ids]).toEqual([id]);
  });

  it("refuses a removal of an unknown id, and the thread stays readable", async () => {
    const threadId = await newThread();
    await streamRun(threadId, asking("@ say hi"));
    const body = { assistant_id: "lead_agent", input: { messages: [{ type: "remove", id: "nowhere" }] } };
    const refused = await send("POST", `/threads/${threadId}/runs/stream`, body);
    expect(refused.status).toBe(422);
    expect(await refused.json()).toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("nowhere"),
    });
    const state = await sendJson<{ values: Values }>("GET", `/threads/${threadId}/state`);
    expect(state.values.messages).toHaveLength(2);
  });

  it("replays a finished run's frames identically to every reader, from any id", async () => {
    const threadId = await newThread();
    const first = await streamRun(
      threadId,
      asking("@ say a b c d e", { stream_mode: ["values", "messages-tuple", "updates"] }),
    );
    const runId = (first[0]!.data as { run_id: string }).run_id;
    const replay = async (lastId: string) => {
      const headers = { "x-api-key": "key-alice", "last-event-id": lastId };
      return parseFrames(
        await (await send("GET", `/threads/${threadId}/runs/${runId}/stream`, undefined, headers)).text(),
      );
    };
    expect(await replay("-1")).toEqual(first);
    expect(await replay("3")).toEqual(first.filter((frame) => Number(frame.id) > 3));
  });

  it("refuses a second run while one is active, and cancels the first into interrupted", async () => {
    const threadId = await newThread();
    const started = await sendJson<{ run_id: string }>(
      "POST",
      `/threads/${threadId}/runs`,
      asking("@ delay 1000\n@ say a b c d e f g h"),
    );
    const busy = await send("POST", `/threads/${threadId}/runs`, asking("@ say second"));
    expect(busy.status).toBe(409);
    expect(await busy.json()).toMatchObject({ code: "thread_busy" });
    expect((await send("POST", `/threads/${threadId}/runs/${started.run_id}/cancel?wait=1`)).status).toBe(204);
    const run = await sendJson<{ status: string }>("GET", `/threads/${threadId}/runs/${started.run_id}`);
    expect(run.status).toBe("interrupted");
    const next = await streamRun(threadId, asking("@ say third"));
    expect(next.at(-1)!.event).toBe("values");
  });

  it("refuses an edit of the state while a run is active: it would branch off the run's own line", async () => {
    const threadId = await newThread();
    const script = '@ call bash {"command": "sleep 15"}\n@ say never';
    const { run_id } = await sendJson<{ run_id: string }>("POST", `/threads/${threadId}/runs`, asking(script));
    const edit = () => send("POST", `/threads/${threadId}/state`, { values: { title: "edited" } });
    expect((await edit()).status).toBe(409);
    await send("POST", `/threads/${threadId}/runs/${run_id}/cancel?wait=1`);
    expect((await edit()).status).toBe(200);
  });

  it("logs events without gaps, from run.start to run.end, and shows messages apart", async () => {
    const threadId = await newThread();
    const frames = await streamRun(threadId, asking("@ say logged"));
    const runId = (frames[0]!.data as { run_id: string }).run_id;
    const events = await sendJson<{ data?: unknown[] } | { seq: number; event_type: string }[]>(
      "GET",
      `/threads/${threadId}/runs/${runId}/events`,
    );
    const rows = (Array.isArray(events) ? events : events.data) as { seq: number; event_type: string }[];
    expect(rows.map((row) => row.event_type)).toEqual(["run.start", "llm.human.input", "llm.ai.response", "run.end"]);
    expect(rows.map((row) => row.seq)).toEqual([1, 2, 3, 4]);
  });

  it("ends a run whose turns are spent as error GraphRecursionError, and keeps its state", async () => {
    const threadId = await newThread();
    const script =
      '@ call ls {"path":"/workspace"}\n@ call ls {"path":"/workspace"}\n@ call ls {"path":"/workspace"}\n@ say done';
    const frames = await streamRun(threadId, asking(script, { config: { recursion_limit: 4 } }));
    expect(frames.at(-1)).toMatchObject({ event: "error", data: { error: "GraphRecursionError" } });
    const state = await sendJson<{ values: Values }>("GET", `/threads/${threadId}/state`);
    expect(state.values.messages.length).toBe(5);
  });
});
