/**
 * Tools that act outside of the object, which dies between the act and the commit of its result: here the act is a row in
 * D1, so what happened is counted where no crash of the object can undo it.
 */
import { env } from "cloudflare:test";
import { Command } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { Tool, ToolRecovery, ToolRuntime } from "../../../src/agent/tools/tool.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

interface Effect {
  readonly call_id: string;
  readonly attempt: number;
  readonly key: string | null;
}

const never = (): Promise<string> => new Promise(() => undefined);

/** Acts once an execution, then gives `answer`. `mark` tells this test's effects from others'. */
function actor(recovery: ToolRecovery, mark: string, answer: () => Promise<string>): Tool {
  return {
    name: "act",
    description: "acts",
    parameters: z.object({}),
    recovery,
    checkWith: "look into the table",
    async execute(_args, { toolCallId, attempt, idempotencyKey }: ToolRuntime) {
      await env.DB.prepare("INSERT INTO test_effects (mark, call_id, attempt, key) VALUES (?1, ?2, ?3, ?4)")
        .bind(mark, toolCallId, attempt, idempotencyKey ?? null)
        .run();
      return succeeded(await answer());
    },
  };
}

async function effectsOf(mark: string): Promise<readonly Effect[]> {
  await env.DB.exec("CREATE TABLE IF NOT EXISTS test_effects (mark TEXT, call_id TEXT, attempt INTEGER, key TEXT)");
  const rows = env.DB.prepare("SELECT call_id, attempt, key FROM test_effects WHERE mark = ?1 ORDER BY rowid").bind(
    mark,
  );
  return (await rows.all<Effect>()).results;
}

const LEAD = "@ call act {}\n@ say lead saw {{result:1}}";
const CHILD =
  "@ delegate general-purpose :: act :: <<'CHILD'\n@ call act {}\n@ say child saw {{result:1}}\nCHILD\n@ say {{result:1}}";

/** Runs the script until the tool has acted, lets the object die there, and gives the next wake at the end of the run. */
async function crash(
  recovery: ToolRecovery,
  script: string,
  look: (found: {
    second: ThreadRuntime;
    runId: string;
    effects: readonly Effect[];
    effectsNow: () => Promise<readonly Effect[]>;
  }) => Promise<void>,
): Promise<void> {
  const mark = crypto.randomUUID();
  await effectsOf(mark);
  await withWakes(async (thread) => {
    const first = await thread.create({ tools: [actor(recovery, mark, never)] });
    const { runId } = await startRun(first, script);
    await eventually(
      () => effectsOf(mark),
      (effects) => effects.length === 1,
    );
    expect(storedStarts(first)).toBe(recovery === "safe" ? 0 : 1);
    const second = await thread.wake({ tools: [actor(recovery, mark, async () => "done")] });
    await second.context.live.get(runId)!.done;
    await look({ second, runId, effects: await effectsOf(mark), effectsNow: () => effectsOf(mark) });
  });
}

function storedStarts({ context }: ThreadRuntime): number {
  return context.storage.sql.exec<{ n: number }>("SELECT count(*) AS n FROM tool_starts").one().n;
}

async function answerOf({ context }: ThreadRuntime): Promise<string> {
  const { messages } = JSON.parse(await context.graphs.renderState(undefined)) as { messages: { content: string }[] };
  return messages.at(-1)!.content;
}

describe.each([
  { where: "the lead", script: LEAD },
  { where: "a child", script: CHILD },
])("a tool call of $where whose object died between act and commit", ({ script }) => {
  it("P2 safe: runs again under its id as attempt 2, without a row of its own", async () => {
    await crash("safe", script, async ({ second, runId, effects }) => {
      expect(second.context.runs.find(runId)!.status).toBe("success");
      expect(effects.map(({ attempt }) => attempt)).toEqual([1, 2]);
      expect(effects[1]!.call_id).toBe(effects[0]!.call_id);
      expect(effects.map(({ key }) => key)).toEqual([null, null]);
      expect(await answerOf(second)).toContain("saw done");
    });
  });

  it("P5 once: is not run again; the model is told that nobody knows, and how to find out", async () => {
    await crash("once", script, async ({ second, runId, effects }) => {
      expect(second.context.runs.find(runId)!.status).toBe("success");
      expect(effects.map(({ attempt }) => attempt)).toEqual([1]);
      const answer = await answerOf(second);
      expect(answer).toContain("Outcome unknown");
      expect(answer).toContain("look into the table");
      expect(answer).toContain(effects[0]!.key!);
      expect(storedStarts(second)).toBe(0);
    });
  });

  it("ask: the run waits for a person, and keeps what it knows of the call", async () => {
    await crash("ask", script, async ({ second, runId, effects }) => {
      const run = second.context.runs.find(runId)!;
      expect(run.status).toBe("interrupted");
      expect(JSON.stringify(run.interrupts)).toContain("tool_outcome_unknown");
      expect(effects).toHaveLength(1);
      expect(storedStarts(second)).toBe(1);
    });
  });
});

it("a once call costs one row when it starts and one when its result commits; a safe call none", async () => {
  const mark = crypto.randomUUID();
  await effectsOf(mark);
  const rows = async (recovery: ToolRecovery): Promise<number> => {
    let written = -1;
    await withWakes(async (thread) => {
      const runtime = await thread.create({ tools: [actor(recovery, mark, async () => "done")] });
      const { runId } = await startRun(runtime, LEAD);
      await runtime.context.live.get(runId)!.done;
      expect(runtime.context.runs.find(runId)!.status).toBe("success");
      expect(storedStarts(runtime)).toBe(0);
      written = runtime.context.meter.byLabel()["tool_starts"]?.rowsWritten ?? 0;
    });
    return written;
  };
  expect(await rows("once")).toBe(2);
  expect(await rows("safe")).toBe(0);
});

const WAIT = "@ call gate {}";

it.each([
  {
    what: "a call's result commits",
    script: `@ call act {}\n${WAIT}\n@ say over`,
    answer: async () => "done",
    cancels: false,
  },
  { what: "a child is cancelled", script: CHILD.replace("@ say {{result:1}}", WAIT), answer: never, cancels: true },
])("a start is gone once $what, while the run goes on", async ({ script, answer, cancels }) => {
  const mark = crypto.randomUUID();
  await effectsOf(mark);
  await withWakes(async (thread) => {
    const waiting = Promise.withResolvers<void>();
    const gate = plainTool("gate", () => {
      waiting.resolve();
      return never().then(succeeded);
    });
    const runtime = await thread.create({ tools: [actor("once", mark, answer), gate] });
    const { runId } = await startRun(runtime, script);
    await eventually(
      () => effectsOf(mark),
      (effects) => effects.length === 1,
    );
    const [delegation] = runtime.context.delegations.ofRun(runId);
    if (cancels) expect(runtime.runs.cancelTask(runId, delegation!.taskId).ok).toBe(true);
    await waiting.promise;
    expect(runtime.context.runs.find(runId)!.status).toBe("running");
    expect(storedStarts(runtime)).toBe(0);
    await runtime.runs.cancel(runId, { wait: true });
  });
});

it("a cancelled run leaves no start behind, whoever of it made the call", async () => {
  const mark = crypto.randomUUID();
  await effectsOf(mark);
  await withWakes(async (thread) => {
    const runtime = await thread.create({ tools: [actor("once", mark, never)] });
    const { runId } = await startRun(runtime, CHILD);
    await eventually(
      () => effectsOf(mark),
      (effects) => effects.length === 1,
    );
    expect(storedStarts(runtime)).toBe(1);
    await runtime.runs.cancel(runId, { wait: true });
    expect(runtime.context.runs.find(runId)!.status).toBe("interrupted");
    expect(storedStarts(runtime)).toBe(0);
  });
});

it.each([
  { answer: "run_again", attempts: [1, 2], told: "saw done" },
  { answer: "skip", attempts: [1], told: "Outcome unknown" },
])("ask after a crash: '$answer' goes on in the object's own graph", async ({ answer, attempts, told }) => {
  await crash("ask", CHILD, async ({ second, runId, effectsNow }) => {
    const run = second.context.runs.find(runId)!;
    const { graph, configurable } = await second.context.graphs.forRun(run);
    const config = { configurable: { ...configurable, run_id: crypto.randomUUID() }, durability: "sync" };
    await second.context.live.settle(runId, async () => {
      for await (const _ of await graph.stream(new Command({ resume: answer }), config));
    });
    expect(await answerOf(second)).toContain(told);
    const effects = await effectsNow();
    expect(effects.map(({ attempt }) => attempt)).toEqual(attempts);
    expect(new Set(effects.map(({ key }) => key)).size).toBe(1);
    expect(effects[0]!.key).toMatch(/^[0-9a-f]{64}$/);
    expect(storedStarts(second)).toBe(0);
  });
});
