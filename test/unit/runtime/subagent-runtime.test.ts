import { AIMessage, HumanMessage, type ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it, vi } from "vitest";
import {
  acpProvider,
  createDeputyAgent,
  SubagentRuntime,
  systemTimers,
  type SubagentRuntimeOptions,
} from "../../../src/agent/embedding.ts";
import { ConnectionFault } from "../../../src/agent/subagents/web-socket.ts";
import type { BatchService } from "../../../src/agent/tools/batch-tools.ts";
import { err } from "../../../src/domain/shared/result.ts";
import { delegatesOnce, LEAD_PROMPT, taskResults } from "../../support/delegation-fixture.ts";
import { MemoryBatches } from "../../support/memory-batches.ts";
import { catalogOf, promptOf, ReplyModel, textAnswer, type Reply } from "../../support/reply-model.ts";

const input = { messages: [new HumanMessage(LEAD_PROMPT)] };
const onThread = { configurable: { thread_id: "t" } };
const items = (...keys: string[]) => keys.map((key) => ({ key, prompt: `do ${key}` }));

function batchCall(name: string, args: Record<string, unknown>): Reply {
  return (request) => {
    const results = request.messages.filter((message) => message.getType() === "tool");
    const call = { id: `call-${name}`, name, args, type: "tool_call" as const };
    return results.length > 0 ? textAnswer("done") : new AIMessage({ content: "", tool_calls: [call] });
  };
}

const submit = (...keys: string[]) =>
  batchCall("batch_task", { title: "Work", subagent_type: "general-purpose", items: items(...keys) });

/** A program with rows of its own: items are answered by `child`. */
function program(child: Reply, more: Partial<SubagentRuntimeOptions> = {}) {
  const rows = new MemoryBatches();
  const model = new ReplyModel(child, "items");
  const models = catalogOf(model);
  const runtime = new SubagentRuntime({ models, batchRepository: rows, batchConfig: { lease_seconds: 2 }, ...more });
  const run = async (lead: Reply) => {
    const agent = createDeputyAgent({
      model: new ReplyModel(lead),
      subagentRuntime: runtime,
      checkpointer: new MemorySaver(),
    });
    const { messages } = await agent.invoke(input, onThread);
    return messages.find((message): message is ToolMessage => message.getType() === "tool")!;
  };
  return { rows, model, runtime, run };
}

const batchIdOf = (result: ToolMessage) => result.additional_kwargs["subagent_batch_id"] as string;

describe("R191 options of a runtime", () => {
  const rows = new MemoryBatches();
  const models = catalogOf(new ReplyModel(() => textAnswer("")));
  const submitter = () => ({}) as BatchService;
  it.each<[string, Record<string, unknown>]>([
    ["batchSubmitter and batchRepository exclude each other", { batchSubmitter: submitter, batchRepository: rows }],
    ["batchConfig needs a batchRepository", { batchConfig: {} }],
    ["batchTools needs a batchRepository", { batchTools: [] }],
    ["batchRepository needs a batchConfig whose `enabled` is true", { batchRepository: rows, models }],
    [
      "batchRepository needs a batchConfig whose `enabled` is true",
      { batchRepository: rows, models, batchConfig: { enabled: false } },
    ],
    ["batchRepository needs models", { batchRepository: rows, batchConfig: {} }],
    ["maxTotalPerRun", { maxTotalPerRun: 0 }],
    ["maxTotalPerRun", { maxTotalPerRun: 51 }],
    ["config.max_running", { config: { max_running: 65 } }],
    ["config.max_running", { config: { max_running: true } }],
    ["config: ", { config: { max_runing: 2 } }],
    ["there is no option 'max_running'; allowed are: config, ", { max_running: 2 }],
    ["are one limit: give one of them", { maxTotalPerRun: 4, subagents: { max_total_per_run: 9 } }],
    ["batchConfig.default_live_items", { batchRepository: rows, models, batchConfig: { max_live_items: 1 } }],
  ])("R191 refuses: %s", (text, options) => {
    expect(() => new SubagentRuntime(options)).toThrow(text);
  });

  it("R35 R191 takes a snapshot: what the caller changes afterwards changes nothing", () => {
    const config = { max_running: 2 };
    const runtime = new SubagentRuntime({ config, maxTotalPerRun: 50 });
    config.max_running = 9;
    expect(runtime.admission.max_running).toBe(2);
    expect(Object.isFrozen(runtime.bind().deputy.subagents)).toBe(true);
    expect(runtime.bind().deputy.subagents.max_total_per_run).toBe(50);
  });
});

describe("R36 R192 a runtime's life", () => {
  it("R36 R192 with a repository it is started before a graph is built on it, and never again after its stop", async () => {
    const { runtime } = program(() => textAnswer("ok"));
    const build = () => createDeputyAgent({ model: "items", subagentRuntime: runtime });
    expect(build).toThrow("`await runtime.start()` before a graph is built on it");
    const starting = runtime.start();
    expect(build).toThrow("`await runtime.start()`");
    await Promise.all([starting, runtime.start()]);
    expect(build().descriptor.tools).toEqual(["task", "batch_task", "batch_status", "cancel_batch"]);
    await runtime.stop();
    expect(runtime.phase).toBe("stopped");
    expect(build).toThrow("this SubagentRuntime was stopped");
    await expect(runtime.start()).rejects.toThrow("this SubagentRuntime was stopped");
  });

  it("R36 a start that failed may be tried again; a stop during a start wins", async () => {
    const rows = new MemoryBatches();
    const list = vi.spyOn(rows, "systemListStale").mockRejectedValueOnce(new Error("no database"));
    const { runtime } = program(() => textAnswer("ok"), { batchRepository: rows });
    await expect(runtime.start()).rejects.toThrow("no database");
    expect(runtime.phase).toBe("idle");
    await runtime.start();
    expect([runtime.phase, list.mock.calls.length]).toEqual(["running", 2]);
    const other = program(() => textAnswer("ok")).runtime;
    const both = [other.start(), other.stop(), other.stop()];
    expect(other.phase).toBe("stopping");
    await Promise.all(both);
    expect(other.phase).toBe("stopped");
  });

  it("R192 from the moment stop is called bound tools answer unavailable, and no other submitter is asked", async () => {
    const asked: string[] = [];
    const service = { submit: async () => (asked.push("submit"), err({ reason: "batches_disabled", message: "" })) };
    const batchSubmitter = () => service as unknown as BatchService;
    const runtime = new SubagentRuntime({ batchSubmitter });
    const delegating = delegatesOnce({ id: "c1", prompt: "child" });
    const calls = [submit("a"), delegating, batchCall("batch_status", { batch_id: "b" })];
    const agents = calls.map((lead) => createDeputyAgent({ model: new ReplyModel(lead), subagentRuntime: runtime }));
    await agents[0]!.invoke(input, onThread);
    expect(asked).toEqual(["submit"]);
    const stopping = runtime.stop();
    const states = await Promise.all(agents.map((agent) => agent.invoke(input, onThread)));
    for (const state of states) {
      expect(taskResults(state)[0]).toMatchObject({ status: "error" });
      expect(taskResults(state)[0]?.text).toContain("Unavailable: the subagent runtime behind this tool was stopped");
    }
    expect(asked).toEqual(["submit"]);
    expect(states[1]?.delegations).toMatchObject([{ id: "c1", status: "failed" }]);
    await stopping;
  });

  it("R192 stop waits for a delegation under way, then tells the caller of its own cancellation", async () => {
    const free = Promise.withResolvers<void>();
    const runtime = new SubagentRuntime();
    const model = new ReplyModel(async (request, config) => {
      if (promptOf(request) === LEAD_PROMPT) return delegatesOnce({ id: "c1", prompt: "hold" })(request, config);
      await free.promise;
      return textAnswer("finished all the same");
    });
    const run = createDeputyAgent({ model, subagentRuntime: runtime }).invoke(input);
    const late = new ReplyModel(delegatesOnce({ id: "c2", prompt: "late" }));
    const other = createDeputyAgent({ model: late, subagentRuntime: runtime });
    await vi.waitFor(() => expect(runtime.admission.running).toBe(1));
    const impatient = new AbortController();
    const stop = runtime.stop({ signal: impatient.signal });
    const settled = vi.fn<() => void>();
    stop.then(settled, settled);
    impatient.abort(new Error("the caller gave up"));
    expect(taskResults(await other.invoke(input))[0]?.text).toContain("Unavailable: the subagent runtime");
    expect([runtime.phase, settled.mock.calls.length]).toEqual(["stopping", 0]);
    free.resolve();
    await expect(stop).rejects.toThrow("the caller gave up");
    expect((await run).delegations).toMatchObject([{ status: "completed" }]);
    await runtime.stop();
  });
});

describe("R61 R192 batches in the caller's process", () => {
  it("R61 items run under leases in this process, in the slots the runtime has, and end in the caller's rows", async () => {
    let [running, most] = [0, 0];
    const { rows, runtime, run, model } = program(
      async (request) => {
        most = Math.max(most, (running += 1));
        await new Promise((resolve) => void setTimeout(resolve, 20));
        running -= 1;
        if (promptOf(request).includes("do c")) throw new Error("broken");
        return textAnswer(`did ${promptOf(request).split("do ")[1]}`);
      },
      { config: { max_running: 2 }, batchConfig: { max_attempts: 1 } },
    );
    await runtime.start();
    const batchId = batchIdOf(await run(submit("a", "b", "c")));
    await vi.waitFor(async () => expect((await rows.getBatch("local", batchId))?.status).toBe("completed"), 15_000);
    const page = await rows.exportPage("local", batchId, { afterOrdinal: -1, limit: 10 });
    expect(page?.items.map(({ key, status, result }) => [key, status, result])).toEqual([
      ["a", "completed", "did a"],
      ["b", "completed", "did b"],
      ["c", "failed", null],
    ]);
    expect(most).toBe(2);
    expect(promptOf(model.requests[0]!)).toContain("Batch item key: a");
    expect(runtime.admission).toMatchObject({ running: 0, grants: [] });
    await runtime.stop();
  });

  it("an item of an agent of another process has one attempt, and no row holds the headers it is reached with", async () => {
    const acp = { url: "ws://localhost:9/agent", headers: { authorization: "Bearer of the operator" } };
    const remote = { description: "elsewhere", provider: "acp" as const, acp };
    const unreachable = async () => Promise.reject(new ConnectionFault("nobody is there"));
    const { rows, runtime, run } = program(() => textAnswer("never"), {
      subagents: { custom_agents: { remote } },
      providers: [acpProvider({ openWebSocket: unreachable, timers: systemTimers })],
    });
    const submitted = vi.spyOn(rows, "submit");
    await runtime.start();
    const items = [{ key: "a", prompt: "do a" }];
    const batchId = batchIdOf(await run(batchCall("batch_task", { title: "Work", subagent_type: "remote", items })));
    expect(JSON.stringify(submitted.mock.calls)).not.toContain("Bearer");
    await vi.waitFor(async () => expect((await rows.getBatch("local", batchId))?.status).toBe("completed"), 15_000);
    const page = await rows.exportPage("local", batchId, { afterOrdinal: -1, limit: 1 });
    expect(page?.items).toMatchObject([{ status: "failed", attempts: 1 }]);
    await runtime.stop();
  });

  it("R192 stop lets the claimed items finish and leaves the others pending; the next start goes on with them", async () => {
    const free = Promise.withResolvers<void>();
    const child: Reply = async () => (await free.promise, textAnswer("late"));
    const { rows, runtime, run } = program(child, { config: { max_running: 1 } });
    await runtime.start();
    const batchId = batchIdOf(await run(submit("a", "b")));
    await vi.waitFor(() => expect(runtime.admission.running).toBe(1));
    const stop = runtime.stop();
    free.resolve();
    await stop;
    expect((await rows.getBatch("local", batchId))?.counts).toMatchObject({ completed: 1, pending: 1, leased: 0 });
    const next = program(() => textAnswer("second process"), { batchRepository: rows });
    await next.runtime.start();
    await vi.waitFor(async () => expect((await rows.getBatch("local", batchId))?.status).toBe("completed"), 15_000);
    await next.runtime.stop();
  });

  it("R192 a cancelled batch's running item is told at once, and another thread's batch does not exist", async () => {
    const told = Promise.withResolvers<void>();
    const child: Reply = (_request, config) =>
      new Promise((_resolve, reject) => {
        config.signal?.addEventListener("abort", () => {
          told.resolve();
          reject(new Error("aborted"));
        });
      });
    const { rows, runtime, run } = program(child, { batchConfig: { lease_seconds: 600 } });
    await runtime.start();
    const batchId = batchIdOf(await run(submit("a")));
    await vi.waitFor(() => expect(runtime.admission.running).toBe(1));
    const elsewhere = runtime.bind().batches!("other");
    expect([await elsewhere.status(batchId), await elsewhere.cancel(batchId)]).toEqual([undefined, undefined]);
    const result = await run(batchCall("cancel_batch", { batch_id: batchId }));
    expect(result.text).toContain("is cancelled");
    await told.promise;
    await runtime.stop();
    expect((await rows.getBatch("local", batchId))?.counts).toMatchObject({ cancelled: 1 });
  });
});
