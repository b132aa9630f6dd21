import { env } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Tool } from "../../../src/agent/tools/tool.ts";
import { D1SubagentDefinitions } from "../../../src/platform/d1/subagent-definitions.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { createBatchBodySchema } from "../../../src/protocol/batches.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { managedDefinition, managedSubagent } from "../../support/managed.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

const store = new D1SubagentDefinitions(env.DB);
const BY = { by: "root", now: 1 };

/** Delegates to the managed `auditor`, after the lead's own tool held it up. */
const SCRIPT =
  "@ call gate {}\n@ delegate auditor :: look :: <<'CHILD'\n@ call probe {}\n@ say child saw {{result:1}}\nCHILD\n@ say {{result:2}}";

const create = (name: string) =>
  store.systemCreate({ name, enabled: true, definition: managedDefinition({ tools: ["probe"] }) }, BY);

const clear = async () => {
  await env.DB.exec("DELETE FROM subagent_definitions");
};
beforeEach(clear);
afterEach(clear);

async function answerOf(runtime: ThreadRuntime): Promise<string> {
  const { messages } = JSON.parse(await runtime.context.graphs.renderState(undefined)) as {
    messages: { content: string }[];
  };
  return messages.at(-1)!.content;
}

/** A tool that waits until the test opens it; `arrived` says that it was called. */
function gateOf(): { tool: Tool; arrived: Promise<void>; open: () => void } {
  const arrived = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const tool = plainTool("gate", async () => {
    arrived.resolve();
    await opened.promise;
    return succeeded("open");
  });
  return { tool, arrived: arrived.promise, open: opened.resolve };
}

const probe = plainTool("probe", () => succeeded("seen"));

describe("a run's managed subagents", () => {
  it("are those of its acceptance: a definition deleted between the lead's step and the child's start still runs", async () => {
    await withWakes(async (thread) => {
      await create("auditor");
      const gate = gateOf();
      const runtime = await thread.create({ tools: [gate.tool, probe] });
      const { runId } = await startRun(runtime, SCRIPT);
      const { done } = runtime.context.live.get(runId)!;
      await gate.arrived;
      await store.systemDelete("auditor");
      gate.open();
      await done;
      expect(await answerOf(runtime)).toContain("child saw seen");
      const next = await startRun(runtime, "@ delegate auditor :: look :: say nothing\n@ say {{result:1}}");
      await runtime.context.live.get(next.runId)!.done;
      expect(await answerOf(runtime)).toContain("Unknown subagent type 'auditor'");
    });
  });

  it("R7 P1 are those of its acceptance after a crash too, whatever was edited meanwhile; the next run has the edit", async () => {
    await withWakes(async (thread) => {
      await create("auditor");
      const gate = gateOf();
      const first = await thread.create({ tools: [gate.tool, probe] });
      const { runId } = await startRun(first, SCRIPT);
      await gate.arrived;
      const edited = managedSubagent("auditor", { tools: [], description: "edited" });
      await store.systemUpdate(edited, BY);
      const reopened = plainTool("gate", () => succeeded("open"));
      const second = await thread.wake({ tools: [reopened, probe] });
      await second.context.live.get(runId)!.done;
      expect(await answerOf(second)).toContain("child saw seen");
      const kept = second.context.runs.find(runId)!.command.managed_subagents;
      expect(kept).toEqual([managedSubagent("auditor", { tools: ["probe"] })]);
      const next = await startRun(second, "@ say hello");
      expect(next.command.managed_subagents).toEqual([{ ...edited, version: 2 }]);
    });
  });

  it("do not include one that was disabled or came later, and cost a row nothing where there are none", async () => {
    await withWakes(async (thread) => {
      await create("resting");
      await store.systemSetEnabled("resting", false, BY);
      const gate = gateOf();
      const runtime = await thread.create({ tools: [gate.tool, probe] });
      const { runId, command } = await startRun(runtime, SCRIPT);
      expect(command).not.toHaveProperty("managed_subagents");
      const { done } = runtime.context.live.get(runId)!;
      await gate.arrived;
      await create("auditor");
      gate.open();
      await done;
      expect(await answerOf(runtime)).toContain("Unknown subagent type 'auditor'");
    });
  });

  it("are left out, and the fault told, when D1 cannot be read: the run is accepted all the same", async () => {
    await withWakes(async (thread) => {
      await create("auditor");
      const told: string[] = [];
      const runtime = await thread.create({ tools: [probe] });
      await env.DB.exec("ALTER TABLE subagent_definitions RENAME TO elsewhere");
      try {
        const dark = await thread.wake({ tools: [probe], report: (what) => void told.push(what) });
        const { runId } = await startRun(dark, "@ say hello");
        await dark.context.live.get(runId)!.done;
        expect(dark.context.runs.find(runId)!.status).toBe("success");
        expect(told).toContain("thread object fault");
      } finally {
        await env.DB.exec("ALTER TABLE elsewhere RENAME TO subagent_definitions");
        runtime.context.close();
      }
    });
  });

  it("never show their prompts in the run as the API gives it", async () => {
    await withWakes(async (thread) => {
      await store.systemCreate(
        { name: "auditor", enabled: true, definition: managedDefinition({ systemPrompt: "Secret prompt" }) },
        BY,
      );
      const runtime = await thread.create();
      const run = await startRun(runtime, "@ say hello");
      const { toRun } = await import("../../../src/durable-objects/run-view.ts");
      expect(run.command.managed_subagents).toHaveLength(1);
      expect(JSON.stringify(toRun(run, thread.threadId))).not.toContain("Secret prompt");
      await runtime.context.live.get(run.runId)!.done;
    });
  });
});

it("P8: the largest run with the largest store of definitions fits in one row of 2 MB", async () => {
  await withWakes(async (thread) => {
    // Two of them are just under the bound of the store; the input is just under the bound of a command.
    const systemPrompt = "x".repeat(99_000);
    for (const name of ["a", "b", "c"]) {
      const created = await store.systemCreate(
        { name, enabled: true, definition: managedDefinition({ systemPrompt }) },
        BY,
      );
      expect(created.ok).toBe(true);
    }
    const runtime = await thread.create();
    const { runId } = await startRun(runtime, `@ say hello\n\n${"y".repeat(1_490_000)}`);
    const [row] = thread.storage.sql
      .exec<{ bytes: number }>("SELECT octet_length(command) AS bytes FROM runs WHERE run_id = ?", runId)
      .toArray();
    expect(row!.bytes).toBeGreaterThan(1_780_000);
    expect(row!.bytes).toBeLessThan(1_900_000);
    runtime.context.live.get(runId)!.abort.abort();
    await runtime.context.live.get(runId)!.done;
  });
});

describe("a batch that a run's model makes", () => {
  const batchOf = (type: string) =>
    `@ call batch_task ${JSON.stringify({ title: "t", subagent_type: type, items: [{ key: "a", prompt: "p" }] })}`;
  const stored = () => env.DB.prepare("SELECT definition FROM batch_definitions").all<{ definition: string }>();
  const clearBatches = async () => {
    await env.DB.exec("DELETE FROM batch_definitions");
  };
  beforeEach(clearBatches);
  afterEach(clearBatches);

  it.each([
    ["edited", () => store.systemUpdate(managedSubagent("auditor", { tools: [], systemPrompt: "edited" }), BY)],
    ["deleted", () => store.systemDelete("auditor")],
  ])("has the definition of the run's acceptance, though it was %s before the call", async (_how, edit) => {
    await withWakes(async (thread) => {
      await create("auditor");
      const gate = gateOf();
      const runtime = await thread.create({ tools: [gate.tool, probe] });
      const { runId } = await startRun(runtime, `@ call gate {}\n${batchOf("auditor")}\n@ say {{result:2}}`);
      const { done } = runtime.context.live.get(runId)!;
      await gate.arrived;
      await edit();
      gate.open();
      await done;
      const accepted = await answerOf(runtime);
      expect(accepted).toMatch(/^Batch \S+ accepted/);
      const { results } = await stored();
      expect(results.map(({ definition }) => JSON.parse(definition) as unknown)).toEqual([
        { ...managedDefinition({ tools: ["probe"] }), name: "auditor", source: "managed" },
      ]);
      await runtime.batches.cancel(accepted.split(" ")[1]!);
    });
  });

  it("cannot be of a subagent that came after the run's acceptance", async () => {
    await withWakes(async (thread) => {
      const gate = gateOf();
      const runtime = await thread.create({ tools: [gate.tool, probe] });
      const { runId } = await startRun(runtime, `@ call gate {}\n${batchOf("auditor")}\n@ say {{result:2}}`);
      const { done } = runtime.context.live.get(runId)!;
      await gate.arrived;
      await create("auditor");
      gate.open();
      await done;
      expect(await answerOf(runtime)).toContain("Unknown subagent type 'auditor'. Available: general-purpose, bash");
      expect((await stored()).results).toEqual([]);
    });
  });
});

describe("a batch's managed subagent", () => {
  it("is snapshotted at submit and stays as it was", async () => {
    await withWakes(async (thread) => {
      await create("auditor");
      const runtime = await thread.create();
      const items = [{ key: "a", prompt: "1+1" }];
      const body = createBatchBodySchema.parse({ title: "Sums", subagent_type: "auditor", items });
      const created = await runtime.batches.create(body, { submissionKey: null, role: "user" });
      if (!created.ok) throw new Error(created.error.message);
      await store.systemDelete("auditor");
      const row = await env.DB.prepare("SELECT definition FROM batch_definitions WHERE batch_id = ?1")
        .bind(created.value.batch.batch_id)
        .first<{ definition: string }>();
      expect(JSON.parse(row!.definition)).toMatchObject({ name: "auditor", source: "managed", tools: ["probe"] });
      expect(await runtime.batches.create(body, { submissionKey: null, role: "user" })).toMatchObject({
        ok: false,
        error: { code: "invalid_request" },
      });
      await eventually(
        () => runtime.batches.cancel(created.value.batch.batch_id),
        (cancelled) => cancelled.ok,
      );
    });
  });
});
