/** What a run may delegate to and who its agent is: taken when the run is accepted, and the run's own from then on. */
import { env } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AgentSnapshot } from "../../../src/domain/assistant/agent-snapshot.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { toRun } from "../../../src/durable-objects/run-view.ts";
import { toRunCommand } from "../../../src/gateway/run-command.ts";
import type { Assistant } from "../../../src/protocol/assistants.ts";
import { createBatchBodySchema } from "../../../src/protocol/batches.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { ask, gatewayDeps } from "../../support/gateway.ts";
import { asking } from "../../support/http.ts";
import { type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

const clear = async () => {
  await env.DB.exec("DELETE FROM assistants");
};
beforeEach(clear);
afterEach(clear);

const deps = gatewayDeps();

/** Delegates twice behind the lead's own tool, which holds it up. */
const SCRIPT =
  "@ call gate {}\n@ & delegate bash :: look :: say bash was here\n@ & delegate general-purpose :: look :: say general was here\n@ say {{result:2}} / {{result:3}}";

async function assistant(method: string, path: string, json?: object): Promise<Assistant> {
  const answer = await ask(deps, `/assistants${path}`, { method, ...(json === undefined ? {} : { json }) });
  expect(answer.ok).toBe(true);
  return answer.status === 204 ? ({} as Assistant) : answer.json<Assistant>();
}

const made = (allowed_subagents: unknown, instructions = "") =>
  assistant("POST", "", {
    graph_id: "lead_agent",
    assistant_id: "mine",
    config: { configurable: { allowed_subagents, instructions } },
    metadata: { team: "audit" },
  });

/** As the gateway makes the run's command from the stored assistant, and the object takes it. */
async function started(runtime: ThreadRuntime, script = SCRIPT, over: Record<string, unknown> = {}) {
  const body = createRunBodySchema.parse({ ...asking(script), assistant_id: "mine", ...over });
  const command = await toRunCommand(deps, body, { owner: "alice", headers: new Headers() });
  if (!command.ok) throw new Error(command.error.message);
  const created = await runtime.runs.create(command.value);
  if (!created.ok) throw new Error(created.error.message);
  return created.value;
}

async function answerOf(runtime: ThreadRuntime): Promise<string> {
  const { messages } = JSON.parse(await runtime.context.graphs.renderState(undefined)) as {
    messages: { content: string }[];
  };
  return messages.at(-1)!.content;
}

function gateOf() {
  const arrived = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const tool = plainTool("gate", async () => {
    arrived.resolve();
    await opened.promise;
    return succeeded("open");
  });
  return { tool, arrived: arrived.promise, open: opened.resolve };
}

const ended = (runtime: ThreadRuntime, runId: string) => runtime.context.live.get(runId)!.done;

/** What changes a policy behind a run: a wider list, a narrower one, the assistant gone, gone and made anew. */
const EDITS: readonly [string, (thread: ThreadWakes) => Promise<unknown>][] = [
  ["widened", () => assistant("PATCH", "/mine", { config: { configurable: { allowed_subagents: null } } })],
  ["emptied", () => assistant("PATCH", "/mine", { config: { configurable: { allowed_subagents: [] } } })],
  ["deleted", () => assistant("DELETE", "/mine")],
  [
    "made anew",
    async () => {
      await assistant("DELETE", "/mine");
      await made(["general-purpose"]);
    },
  ],
];

const ONLY_BASH = /bash was here.*Unknown subagent type 'general-purpose'\. Available: bash/s;

describe("R9 R10 R11 a run's list of subagents", () => {
  it.each(EDITS)(
    "is that of its acceptance, though %s between the lead's step and the child's start",
    async (_how, edit) => {
      await withWakes(async (thread) => {
        await made(["bash"]);
        const gate = gateOf();
        const runtime = await thread.create({ tools: [gate.tool] });
        const { runId } = await started(runtime);
        const done = ended(runtime, runId);
        await gate.arrived;
        await edit(thread);
        gate.open();
        await done;
        expect(await answerOf(runtime)).toMatch(ONLY_BASH);
      });
    },
  );

  it.each(EDITS)("is that of its acceptance after a crash too, though %s before recovery (P1)", async (_how, edit) => {
    await withWakes(async (thread) => {
      await made(["bash"]);
      const gate = gateOf();
      const first = await thread.create({ tools: [gate.tool] });
      const { runId } = await started(first);
      await gate.arrived;
      await edit(thread);
      const second = await thread.wake({ tools: [plainTool("gate", () => succeeded("open"))] });
      await ended(second, runId);
      expect(await answerOf(second)).toMatch(ONLY_BASH);
      expect(second.context.runs.find(runId)!.command.agent?.allowedSubagents).toEqual(["bash"]);
    });
  });

  it("is the next run's to have anew", async () => {
    await withWakes(async (thread) => {
      await made(["bash"]);
      const runtime = await thread.create();
      const script = "@ delegate general-purpose :: look :: say general was here\n@ say {{result:1}}";
      const before = await started(runtime, script);
      await ended(runtime, before.runId);
      expect(await answerOf(runtime)).toContain("Unknown subagent type");
      await assistant("PATCH", "/mine", { config: { configurable: { allowed_subagents: ["general-purpose"] } } });
      const after = await started(runtime, script);
      await ended(runtime, after.runId);
      expect(await answerOf(runtime)).toContain("general was here");
      expect([before, after].map(({ command }) => command.agent?.assistantVersion)).toEqual([1, 2]);
    });
  });

  it.each([
    [null, null],
    [[], []],
    [["bash"], ["bash"]],
  ])("%j stands in the run's metadata, over whatever a client wrote there", async (list, told) => {
    await withWakes(async (thread) => {
      await made(list);
      const runtime = await thread.create();
      const forged = { metadata: { allowed_subagents: ["general-purpose"], mine: 1 } };
      const run = await started(runtime, "@ say hello", forged);
      await ended(runtime, run.runId);
      const view = toRun(runtime.context.runs.find(run.runId)!, thread.threadId);
      expect(view.metadata).toMatchObject({ team: "audit", mine: 1, allowed_subagents: told });
      await runtime.context.flush.flush();
      const row = await env.DB.prepare("SELECT metadata FROM runs WHERE run_id = ?1")
        .bind(run.runId)
        .first<{ metadata: string }>();
      expect(JSON.parse(row!.metadata)).toMatchObject({ allowed_subagents: told });
    });
  });

  it("stands there as null for the default assistant", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      const run = await started(runtime, "@ say hello", { assistant_id: "lead_agent" });
      await ended(runtime, run.runId);
      expect(toRun(run, thread.threadId).metadata).toMatchObject({ allowed_subagents: null });
    });
  });
});

describe("an agent's texts", () => {
  const secret: AgentSnapshot = {
    v: 1,
    assistantVersion: 1,
    instructions: [
      { trust: "operator", text: "Operator secret" },
      { trust: "user", text: "User text" },
    ],
    allowedSubagents: null,
    tools: null,
  };

  it("R173 are neither in the run as the API gives it nor in its state, its events and its frames", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      const body = createRunBodySchema.parse(asking("@ say hello", { stream_mode: ["values", "messages-tuple"] }));
      const created = await runtime.runs.create({ graph_id: "lead_agent", body, agent: secret });
      if (!created.ok) throw new Error(created.error.message);
      const { runId, command } = created.value;
      await ended(runtime, runId);
      expect(command.agent).toEqual(secret);
      const stored = thread.storage.sql.exec<{ frames: string }>("SELECT frames FROM frame_blocks").toArray();
      expect(stored.length).toBeGreaterThan(0);
      await runtime.context.flush.flush();
      const { results } = await env.DB.prepare("SELECT * FROM run_events WHERE thread_id = ?1")
        .bind(thread.threadId)
        .all();
      expect(results.length).toBeGreaterThan(0);
      const told = [
        toRun(created.value, thread.threadId),
        await runtime.context.graphs.renderState(undefined),
        stored,
        results,
      ];
      expect(JSON.stringify(told)).not.toMatch(/Operator secret|User text/);
    });
  });

  it("P8 a run with the largest of them fits the run's row, or is refused with the bound", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      const text = "x".repeat(100_000);
      const agent: AgentSnapshot = {
        ...secret,
        instructions: [
          { trust: "operator", text },
          { trust: "user", text },
        ],
      };
      const body = (bytes: number) => createRunBodySchema.parse(asking(`@ say hello\n\n${"y".repeat(bytes)}`));
      const refused = await runtime.runs.create({ graph_id: "lead_agent", body: body(1_400_000), agent });
      expect(refused).toMatchObject({ ok: false, error: { code: "too_large" } });
      const created = await runtime.runs.create({ graph_id: "lead_agent", body: body(1_200_000), agent });
      expect(created.ok).toBe(true);
      if (created.ok) await ended(runtime, created.value.runId);
    });
  });
});

it("R10 a batch of the owner's own making is bound by no agent: no run makes it", async () => {
  await withWakes(async (thread) => {
    await made([]);
    const runtime = await thread.create();
    const run = await started(runtime, "@ say hello");
    await ended(runtime, run.runId);
    const body = createBatchBodySchema.parse({ title: "t", subagent_type: "bash", items: [{ key: "a", prompt: "1" }] });
    const batch = await runtime.batches.create(body, { submissionKey: null, role: "user" });
    expect(batch.ok).toBe(true);
    if (!batch.ok) return;
    await eventually(
      () => runtime.batches.cancel(batch.value.batch.batch_id),
      (cancelled) => cancelled.ok,
    );
  });
});
