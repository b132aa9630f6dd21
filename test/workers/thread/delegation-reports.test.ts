/** What is told of a delegation, live and after the object is gone: its model, what it used, how it ended. */
import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import type { NextFrame } from "../../../src/platform/durable-storage/frame-log.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

const config = {
  models: [{ name: "small", provider: "scripted" as const }],
  subagents: { agents: { bash: { model: "small" } } },
};

async function endOf(runId: string): Promise<Record<string, unknown>> {
  const query = "SELECT content FROM run_events WHERE run_id = ? AND event_type = 'subagent.end'";
  const row = await eventually(
    () => env.DB.prepare(query).bind(runId).first<{ content: string }>(),
    (found) => found !== null,
  );
  return JSON.parse(row!.content) as Record<string, unknown>;
}

async function resultIn(runtime: ThreadRuntime): Promise<Record<string, unknown>> {
  const { messages } = JSON.parse(await runtime.context.graphs.renderState(undefined)) as {
    messages: { type: string; additional_kwargs: Record<string, unknown> }[];
  };
  return messages.find(({ type }) => type === "tool")!.additional_kwargs;
}

function customOf(frames: { next: (after: number) => NextFrame }): Record<string, unknown>[] {
  const events: Record<string, unknown>[] = [];
  let found = frames.next(0);
  while (found.kind === "frame") {
    const { event, data, id } = found.frame;
    if (event === "custom") events.push(JSON.parse(data as string) as Record<string, unknown>);
    found = frames.next(id);
  }
  return events;
}

/** Runs one delegation to `type` and tells of it from a wake that knows storage only. */
async function reports(thread: ThreadWakes, type: string, childSteps: readonly string[]) {
  const script = `@ delegate ${type} :: count :: <<'CHILD'\n${childSteps.join("\n")}\nCHILD\n@ say done`;
  const runtime = await thread.create({ config });
  const { runId } = await startRun(runtime, script, { stream_mode: ["custom"] });
  const live = runtime.context.live.get(runId)!;
  await live.done;
  const events = customOf(live.frames);
  const later = await thread.wake({ config });
  return { events, end: await endOf(runId), result: await resultIn(later) };
}

describe("a delegation", () => {
  it("R62 R65 R66 names the model that is used and what it used: from the first event to the log and the state a later wake reads", async () => {
    await withWakes(async (thread) => {
      const { events, end, result } = await reports(thread, "bash", ["@ usage 10 1", "@ call ls {}", "@ say one"]);
      const usage = { input_tokens: 20, output_tokens: 2, total_tokens: 22 };
      expect(events[0]).toMatchObject({ type: "task_started", model_name: "small" });
      expect(events.at(-1)).toMatchObject({ type: "task_completed", model_name: "small", usage });
      expect(end).toMatchObject({ status: "completed", model_name: "small", usage, result: "one" });
      expect(result).toMatchObject({ subagent_model_name: "small", subagent_token_usage: usage });
    });
  });

  it("R62 names the lead's model where its definition inherits it", async () => {
    await withWakes(async (thread) => {
      const { events, end } = await reports(thread, "general-purpose", ["@ say one"]);
      expect([events[0]!["model_name"], end["model_name"]]).toEqual(["small", "small"]);
    });
  });

  it("R67 whose provider reports no usage is told without one, nowhere with zeros", async () => {
    await withWakes(async (thread) => {
      const { events, end, result } = await reports(thread, "bash", ["@ usage none", "@ say one"]);
      expect(events.at(-1)).toMatchObject({ type: "task_completed", usage: null });
      expect(end).not.toHaveProperty("usage");
      expect(result).not.toHaveProperty("subagent_token_usage");
      expect(result).toMatchObject({ subagent_model_name: "small" });
    });
  });
});
