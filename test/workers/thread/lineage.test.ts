/** Whatever becomes of a thread, a checkpoint that is kept has the messages it had: random lives of threads. */
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Run } from "../../../src/protocol/runs.ts";
import type { Thread, ThreadStateBody } from "../../../src/protocol/threads.ts";
import { asking, newThread, send, sendJson } from "../../support/http.ts";

type Step = { readonly kind: "run" | "fork" | "edit" | "prune" | "copy" | "rollback"; readonly pick: number };

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("run", "run", "fork", "edit", "prune", "copy", "rollback"),
  pick: fc.nat(100),
});

const SCRIPT = "@ call ls {}\n@ say done";

async function messagesByCheckpoint(threadId: string): Promise<Map<string, string>> {
  const states = await sendJson<ThreadStateBody[]>("POST", `/threads/${threadId}/history`, { limit: 1_000 });
  return new Map(
    states.map((state) => [state.checkpoint!.checkpoint_id!, JSON.stringify(state.values["messages"] ?? [])]),
  );
}

/** The thread that life goes on in. */
async function live(threadId: string, { kind, pick }: Step, known: ReadonlyMap<string, string>): Promise<string> {
  const ids = [...known.keys()];
  const checkpoint_id = ids.length === 0 ? undefined : ids[pick % ids.length];
  const run = `/threads/${threadId}/runs`;
  if (kind === "run") await sendJson("POST", `${run}/wait`, asking(SCRIPT));
  if (kind === "fork")
    await sendJson("POST", `${run}/wait`, asking(SCRIPT, { ...(checkpoint_id && { checkpoint_id }) }));
  if (kind === "edit") {
    const values = { messages: [{ type: "human", content: `edit ${pick}` }] };
    await sendJson("POST", `/threads/${threadId}/state`, { values, ...(checkpoint_id && { checkpoint_id }) });
  }
  if (kind === "prune") {
    await sendJson("POST", "/threads/prune", { thread_ids: [threadId], strategy: "keep_latest" });
  }
  if (kind === "rollback") {
    const { run_id: runId } = await sendJson<Run>("POST", run, asking("@ call ls {}\n@ fail stall"));
    const cancelled = await send("POST", `${run}/${runId}/cancel?wait=1&action=rollback`);
    expect(cancelled.status).toBe(204);
  }
  return kind === "copy" ? (await sendJson<Thread>("POST", `/threads/${threadId}/copy`)).thread_id : threadId;
}

it("run, fork, edit, prune, copy and rollback leave every kept checkpoint's messages as they were", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 7 }), async (steps) => {
      let threadId = await newThread();
      let known = new Map<string, string>();
      for (const each of steps) {
        const head = [...known.keys()][0];
        threadId = await live(threadId, each, known);
        const now = await messagesByCheckpoint(threadId);
        for (const [id, messages] of known) {
          if (now.has(id)) expect(now.get(id)).toBe(messages);
          else expect(each.kind).toBe("prune");
        }
        if (["prune", "copy", "rollback"].includes(each.kind)) expect([...now.keys()][0]).toBe(head);
        else expect(now.size).toBeGreaterThan(known.size);
        if (each.kind === "copy" || each.kind === "rollback") expect(now).toEqual(known);
        known = now;
      }
    }),
    { numRuns: 8 },
  );
}, 60_000);
