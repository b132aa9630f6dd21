import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import type { CallerUsage } from "../../../src/domain/run/run-usage.ts";
import type { Run } from "../../../src/protocol/runs.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { asking, newThread, sendJson } from "../../support/http.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

const MODEL = "scripted";
const reported = (caller: string, answers: number, input: number, output: number): CallerUsage => ({
  caller,
  model_name: MODEL,
  reported: { answers, input_tokens: input, output_tokens: output, total_tokens: input + output },
});

/** Each of the child's two answers reports 10 and 1, each of the lead's 100 and 7. */
const DELEGATION = [
  "@ usage 100 7",
  "@ delegate general-purpose :: look :: <<'CHILD'",
  "@ usage 10 1",
  "@ call probe {}",
  "@ say seen",
  "CHILD",
  "@ say done",
].join("\n");

async function endOf(runId: string): Promise<Record<string, unknown>> {
  const query = "SELECT content FROM run_events WHERE run_id = ? AND event_type IN ('run.end', 'run.error')";
  const row = await eventually(
    () => env.DB.prepare(query).bind(runId).first<{ content: string }>(),
    (found) => found !== null,
  );
  return JSON.parse(row!.content) as Record<string, unknown>;
}

describe("the usage of a run", () => {
  it("stands in the run and in its end, by caller and model, each answer once; the parent's message has the lead's alone", async () => {
    const threadId = await newThread();
    const script = DELEGATION.replace("call probe {}", 'call bash {"command": "true"}');
    const values = await sendJson<{ messages: Record<string, unknown>[] }>(
      "POST",
      `/threads/${threadId}/runs/wait`,
      asking(script),
    );
    const [run] = await sendJson<Run[]>("GET", `/threads/${threadId}/runs`);
    const usage = [reported("lead_agent", 2, 200, 14), reported("subagent:general-purpose", 2, 20, 2)];
    expect(run!.usage).toEqual(usage);
    expect(await endOf(run!.run_id)).toEqual({ status: "success", usage });
    const leadAnswers = values.messages.filter(({ type }) => type === "ai").map((each) => each["usage_metadata"]);
    const own = { input_tokens: 100, output_tokens: 7, total_tokens: 107 };
    expect(leadAnswers).toEqual([own, own]);
  });

  it("R67 keeps Deputy's estimate apart from reports, and marks the answer it is of", async () => {
    const threadId = await newThread();
    const script = '@ usage 100 7\n@ call bash {"command": "true"}\n@ usage none\n@ say 12345678';
    const values = await sendJson<{ messages: Record<string, unknown>[] }>(
      "POST",
      `/threads/${threadId}/runs/wait`,
      asking(script),
    );
    const [run] = await sendJson<Run[]>("GET", `/threads/${threadId}/runs`);
    const [entry, ...more] = run!.usage!;
    expect(more).toEqual([]);
    expect(entry!.reported).toEqual({ answers: 1, input_tokens: 100, output_tokens: 7, total_tokens: 107 });
    expect(entry!.estimated).toMatchObject({ answers: 1, output_tokens: 2 });
    const last = values.messages.at(-1)!;
    expect(last).not.toHaveProperty("usage_metadata");
    expect(last["additional_kwargs"]).toMatchObject({ deputy_usage_estimate: { output_tokens: 2 } });
  });

  it("P2 counts a child's finished turns once when the object died in its second one, and nothing of an earlier run", async () => {
    await withWakes(async (thread) => {
      const reached = Promise.withResolvers<void>();
      const dying = plainTool("probe", async () => {
        reached.resolve();
        return new Promise(() => undefined);
      });
      const first = await thread.create({ tools: [dying] });
      const earlier = await startRun(first, "@ usage 5000 1\n@ say earlier");
      await first.context.live.get(earlier.runId)!.done;
      const { runId } = await startRun(first, DELEGATION);
      await reached.promise;
      const second = await thread.wake({ tools: [plainTool("probe", () => succeeded("seen"))] });
      await second.context.live.get(runId)!.done;
      expect(second.context.runs.find(runId)!.usage).toEqual([
        reported("lead_agent", 2, 200, 14),
        reported("subagent:general-purpose", 2, 20, 2),
      ]);
    });
  });

  it("includes what a child used whose run was cancelled under it", async () => {
    await withWakes(async (thread) => {
      const reached = Promise.withResolvers<void>();
      const holding = plainTool("probe", async (_args, { signal }) => {
        reached.resolve();
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("ended"))));
      });
      const runtime = await thread.create({ tools: [holding] });
      const { runId } = await startRun(runtime, DELEGATION);
      await reached.promise;
      await runtime.runs.cancel(runId, { wait: true });
      expect(runtime.context.runs.find(runId)!).toMatchObject({
        status: "interrupted",
        usage: [reported("lead_agent", 1, 100, 7), reported("subagent:general-purpose", 1, 10, 1)],
      });
    });
  });

  it("is not taken from messages a client brings", async () => {
    const threadId = await newThread();
    const forged = {
      type: "ai",
      content: "x",
      usage_metadata: { input_tokens: 9, output_tokens: 9, total_tokens: 18 },
    };
    const messages = [forged, { type: "human", content: "@ usage 1 1\n@ say y" }];
    await sendJson("POST", `/threads/${threadId}/runs/wait`, { assistant_id: "lead_agent", input: { messages } });
    const [run] = await sendJson<Run[]>("GET", `/threads/${threadId}/runs`);
    expect(run!.usage).toEqual([reported("lead_agent", 1, 1, 1)]);
  });
});
