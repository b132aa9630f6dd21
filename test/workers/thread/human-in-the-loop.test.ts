/** People who answer a thread whose object dies in the meantime, and what waiting for them costs: nothing. */
import { describe, expect, it } from "vitest";
import { interrupt } from "@langchain/langgraph";
import type { Tool } from "../../../src/agent/tools/tool.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import type { RunRecord } from "../../../src/platform/durable-storage/run-store.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, tomorrow, withWakes } from "../../support/thread-wakes.ts";

async function answer(runtime: ThreadRuntime, resume: unknown): Promise<RunRecord> {
  const body = createRunBodySchema.parse({ assistant_id: "lead_agent", command: { resume } });
  const created = await runtime.runs.create({ graph_id: "lead_agent", body });
  if (!created.ok) throw new Error(created.error.message);
  return ended(runtime, created.value.runId);
}

async function ended(runtime: ThreadRuntime, runId: string): Promise<RunRecord> {
  await runtime.context.live.get(runId)?.done;
  return runtime.context.runs.find(runId)!;
}

async function lastMessage({ context }: ThreadRuntime): Promise<string> {
  const { messages } = JSON.parse(await context.graphs.renderState(undefined)) as { messages: { content: string }[] };
  return messages.at(-1)!.content;
}

const COLOUR = plainTool("colour", () => succeeded(`told ${String(interrupt("which colour?"))}`));
const CHILD =
  "@ delegate general-purpose :: ask :: <<'CHILD'\n@ call colour {}\n@ say child was {{result:1}}\nCHILD\n@ say lead got {{result:1}}";

/** Its call ends in this wake, or never. */
function paint(done: string[], returns: boolean): Tool {
  return plainTool("paint", async (_args, { toolCallId }) => {
    done.push(toolCallId);
    if (!returns) await new Promise(() => undefined);
    return succeeded("painted");
  });
}

describe("a question of a child", () => {
  it("is answered after a restart, and waiting costs no slot, no alarm and no attempt", async () => {
    await withWakes(async (thread) => {
      const first = await thread.create({ tools: [COLOUR] });
      const { runId } = await startRun(first, CHILD);
      const asked = await ended(first, runId);
      expect([asked.status, JSON.stringify(asked.interrupts)]).toEqual([
        "interrupted",
        expect.stringContaining("which colour?"),
      ]);
      expect(first.context.admission.snapshot()).toMatchObject({ running: 0, queued: 0 });
      await eventually(() => first.context.outbox.pending() === undefined, Boolean);
      let row = "";
      for (let wake = 1; wake <= 4; wake += 1) {
        await thread.storage.deleteAlarm();
        const again = await thread.wake({ tools: [COLOUR] });
        await again.onAlarm();
        // Frames of a run that ended expire once; nothing else is due, however often somebody looks.
        const alarm = await thread.storage.getAlarm();
        expect(alarm === null || alarm > tomorrow() + 60_000).toBe(true);
        const stored = again.context.runs.find(runId)!;
        const now = JSON.stringify([stored.attempt, stored.recovery, stored.updatedAt, again.context.live.size]);
        row ||= now;
        expect(now).toBe(row);
      }
      const last = await thread.wake({ tools: [COLOUR] });
      expect((await answer(last, "blue")).status).toBe("success");
      expect(await lastMessage(last)).toContain("lead got");
      expect(await lastMessage(last)).toContain("child was told blue");
    });
  });
});

describe("an approved tool", () => {
  it("runs after a kill between the approval and its result, without another question", async () => {
    await withWakes(async (thread) => {
      const tools = (done: string[], returns: boolean) => [paint(done, returns)];
      const approving = { tools: { approval: { paint: {} } } };
      const first = await thread.create({ tools: tools([], false), config: approving });
      const { runId } = await startRun(first, "@ call paint {}\n@ say saw {{result:1}}");
      expect(JSON.stringify((await ended(first, runId)).interrupts)).toContain("actionRequests");
      const hanging: string[] = [];
      const second = await thread.wake({ tools: tools(hanging, false), config: approving });
      const body = createRunBodySchema.parse({
        assistant_id: "lead_agent",
        command: { resume: { decisions: [{ type: "approve" }] } },
      });
      const created = await second.runs.create({ graph_id: "lead_agent", body });
      await eventually(() => hanging.length === 1, Boolean);
      const done: string[] = [];
      const third = await thread.wake({ tools: tools(done, true), config: approving });
      const run = await ended(third, created.ok ? created.value.runId : "");
      expect([run.status, done]).toEqual(["success", hanging]);
      expect(await lastMessage(third)).toContain("saw painted");
    });
  });
});

it("input instead of an answer ends the open call as cancelled, and the old question is gone", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create({ tools: [COLOUR] });
    const asked = await ended(runtime, (await startRun(runtime, "@ call colour {}\n@ say never")).runId);
    const [{ id }] = asked.interrupts as [{ id: string }];
    expect((await ended(runtime, (await startRun(runtime, "@ say other")).runId)).status).toBe("success");
    await expect(answer(runtime, { [id]: "blue" })).rejects.toThrow("nothing waits for an answer");
  });
});
