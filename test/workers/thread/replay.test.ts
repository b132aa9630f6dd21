import { abortAllDurableObjects } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { ALICE, asking, newThread, parseFrames, send, sendJson } from "../../support/http.ts";

const RUNS_KEPT = 20;

const DELEGATION = [
  "@ & delegate general-purpose :: count :: <<'CHILD'",
  '@ call bash {"command": "echo 41 > n.txt; cat n.txt"}',
  "@ say found {{result:1:line 1}} and ümläuts 🚣",
  "CHILD",
  '@ & call bash {"command": "echo {\\"a\\": [1, 2]}"}',
  "@ usage 100 7",
  "@ say done: {{result:last:line 1}}",
].join("\n");

async function textOf(response: Promise<Response>): Promise<string> {
  return (await response).text();
}

function replay(threadId: string, runId: string, lastEventId = "-1"): Promise<string> {
  const headers = { ...ALICE, "last-event-id": lastEventId };
  return textOf(send("GET", `/threads/${threadId}/runs/${runId}/stream`, undefined, headers));
}

function runIdOf(text: string): string {
  return (parseFrames(text)[0]!.data as { run_id: string }).run_id;
}

describe("replay", () => {
  it("gives a values frame byte for byte as it was live, after the object and its values cache are gone", async () => {
    const threadId = await newThread();
    const body = asking(DELEGATION, { stream_mode: ["values", "messages-tuple", "updates", "custom"] });
    const live = await textOf(send("POST", `/threads/${threadId}/runs/stream`, body));
    expect(live.match(/^event: values$/gm)!.length).toBeGreaterThan(3);
    await abortAllDurableObjects();
    expect(await replay(threadId, runIdOf(live))).toBe(live);
  });

  it("gives an older run's frames as they were, whatever later runs and edits did to the thread", async () => {
    const threadId = await newThread();
    const first = await textOf(send("POST", `/threads/${threadId}/runs/stream`, asking("@ say first")));
    await textOf(send("POST", `/threads/${threadId}/runs/stream`, asking("@ say second")));
    const messages = [{ type: "human", content: "written by hand" }];
    await sendJson("POST", `/threads/${threadId}/state`, { values: { messages } });
    await abortAllDurableObjects();
    expect(await replay(threadId, runIdOf(first))).toBe(first);
  });

  it("says gap and gives the newest state when a run's checkpoints are gone, never an empty state as its values (P5)", async () => {
    const threadId = await newThread();
    const first = await textOf(send("POST", `/threads/${threadId}/runs/stream`, asking("@ say first")));
    for (let run = 0; run < RUNS_KEPT; run += 1) {
      await textOf(send("POST", `/threads/${threadId}/runs/wait`, asking(`@ say again ${run}`)));
    }
    // Pruning follows the end of the run that makes it due.
    const again = await eventually(
      async () => parseFrames(await replay(threadId, runIdOf(first))),
      (frames) => frames[0]!.event !== "metadata",
    );
    expect(again.map((frame) => frame.event)).toEqual(["gap", "values"]);
    expect((again[1]!.data as { messages: unknown[] }).messages).toHaveLength(2 * (RUNS_KEPT + 1));
    const joined = await sendJson<{ messages: unknown[] }>("GET", `/threads/${threadId}/runs/${runIdOf(first)}/join`);
    // The state it ended with is where the oldest kept run began, so that one is still there.
    expect(joined.messages).toHaveLength(2);
    // The oldest run that is kept still replays whole.
    const runs = await sendJson<{ run_id: string }[]>("GET", `/threads/${threadId}/runs?limit=${RUNS_KEPT}`);
    const kept = parseFrames(await replay(threadId, runs.at(-1)!.run_id));
    expect(kept[0]!.event).toBe("metadata");
    expect((kept.at(-1)!.data as { messages: unknown[] }).messages).toHaveLength(4);
  });
});
