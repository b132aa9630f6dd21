import { HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, expectTypeOf, it, vi } from "vitest";
import type { AgentGraph } from "../../../src/agent/graph/agent-graph.ts";
import { assembleLeadAgent } from "../../../src/agent/lead/assemble-lead-agent.ts";
import type { LeadAgent, LeadAgentOptions } from "../../../src/agent/lead/lead-agent-options.ts";
import { makeLeadAgent } from "../../../src/agent/lead/make-lead-agent.ts";
import { environmentCredentials } from "../../../src/agent/models/environment-credentials.ts";
import { LOCAL_THREADS_MAX } from "../../../src/agent/runtime/local-threads.ts";
import { sha256 } from "../../../src/agent/sha256.ts";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import { catalogOf, ReplyModel, textAnswer } from "../../support/reply-model.ts";
import { leadFixture } from "../../support/lead-fixture.ts";

const onThread = (thread_id: string) => ({ configurable: { thread_id, run_id: "run-1" } });

async function say(graph: AgentGraph, text: string, config = onThread("t")): Promise<ThreadState> {
  const input = { messages: [new HumanMessage({ id: "h1", content: text })] };
  const state: unknown = await graph.invoke(input, config);
  return state as ThreadState;
}

describe("the frozen signature", () => {
  it("R161 makeLeadAgent takes a run's config and nothing else, and gives the bare graph", () => {
    expectTypeOf(makeLeadAgent).parameters.toEqualTypeOf<[config: RunnableConfig]>();
    expectTypeOf(makeLeadAgent).returns.toEqualTypeOf<AgentGraph>();
    // @ts-expect-error -- a second parameter would take what LangGraph's server passes for options of ours
    const graph = makeLeadAgent({}, { deputy: null });
    expect(makeLeadAgent).toHaveLength(1);
    expect(graph).not.toHaveProperty("descriptor");
    expect(typeof graph.stream).toBe("function");
  });

  it("R163 assembleLeadAgent takes config and any of the options, and gives graph and descriptor", () => {
    expectTypeOf(assembleLeadAgent).parameters.toEqualTypeOf<
      [config: RunnableConfig, options?: Partial<LeadAgentOptions> | undefined]
    >();
    expectTypeOf(assembleLeadAgent).returns.toEqualTypeOf<LeadAgent>();
    const agent = assembleLeadAgent({});
    expect(Object.keys(agent).toSorted()).toEqual(["descriptor", "graph"]);
  });

  it("R163 a composition of this process stands in for options: files and subagents work", async () => {
    const script = [
      "@ delegate bash :: Add up :: <<'JOB'",
      '@ call bash {"command": "echo $((20 + 22)) > /workspace/sum.txt"}',
      "@ say written",
      "JOB",
      '@ call read_file {"path": "/workspace/sum.txt"}',
      "@ say found {{result:2}}",
    ].join("\n");
    const state = await say(makeLeadAgent(onThread("local-1")), script, onThread("local-1"));
    expect(state.messages.at(-1)?.text).toContain("42");
    expect(state.delegations).toMatchObject([{ subagent_type: "bash", status: "completed", run_id: "run-1" }]);
  });

  it("keeps a thread's files between its runs, shows them to no other thread, and forgets the oldest thread", async () => {
    const write = '@ call write_file {"path": "/workspace/a.txt", "content": "mine"}\n@ say done';
    const look = '@ call ls {"path": "/workspace"}\n@ say {{result:1}}';
    const run = async (thread: string, script: string) =>
      (await say(makeLeadAgent(onThread(thread)), script, onThread(thread))).messages.at(-1)?.text;
    await run("local-a", write);
    expect(await run("local-a", look)).toContain("a.txt");
    expect(await run("local-b", look)).not.toContain("a.txt");
    for (let other = 0; other < LOCAL_THREADS_MAX; other += 1) makeLeadAgent(onThread(`local-other-${other}`));
    expect(await run("local-a", look)).not.toContain("a.txt");
  });

  it("R163 an option that is given wins over the local one", async () => {
    const models = catalogOf(new ReplyModel(() => textAnswer("from the caller's model")));
    const { graph, descriptor } = assembleLeadAgent(onThread("t"), { models, checkpointer: new MemorySaver() });
    expect(descriptor.model).toBe(models.defaultName);
    expect((await say(graph, "hello")).messages.at(-1)?.text).toBe("from the caller's model");
    expect((await graph.getState(onThread("t"))).values).toMatchObject({ messages: [{ id: "h1" }, {}] });
  });

  it("models get their credentials from the process environment, and none where there is no process", () => {
    const environment = { OPENAI_API_KEY: "k", OPENAI_BASE_URL: "http://localhost:1/v1", OPENAI_MODEL: "m" };
    expect(environmentCredentials(environment)).toMatchObject({ openaiApiKey: "k", openaiModel: "m" });
    vi.stubEnv("OPENAI_API_KEY", "from-process");
    expect(environmentCredentials().openaiApiKey).toBe("from-process");
    vi.stubGlobal("process", undefined);
    expect(environmentCredentials().openaiApiKey).toBeUndefined();
    vi.unstubAllGlobals();
    vi.unstubAllEnvs();
  });
});

describe("the descriptor", () => {
  it("R164 tells the model after overrides, the prompt's hash, the tools that are left and the hooks in order", async () => {
    const asked: string[] = [];
    const model = new ReplyModel((request) => {
      asked.push(request.messages[0]?.text ?? "", ...request.tools.map((tool) => tool.name));
      return textAnswer("done");
    });
    const models = { ...catalogOf(model), find: (name?: string) => (name === "other" ? model : undefined) };
    const { graph, descriptor, config } = leadFixture({
      models,
      deputy: { tools: { deny: ["write_file"] } },
      configurable: { model_name: "other" },
    });
    await say(graph, "hello", config);
    const [prompt = "", ...tools] = asked;
    expect(descriptor.model).toBe(model.name);
    expect(descriptor.promptSha256).toBe(sha256(prompt));
    expect(descriptor.tools).toEqual(tools);
    expect(descriptor.tools).not.toContain("write_file");
    expect(descriptor.hooks).toEqual(descriptor.parts.hooks.map((hook) => hook.name));
  });

  it("R174 the hooks it holds are the graph's own objects, not equal ones", async () => {
    const { graph, descriptor, config } = leadFixture();
    const seen: string[] = [];
    for (const hook of descriptor.parts.hooks) {
      Object.assign(hook, { beforeModel: () => void seen.push(hook.name) });
    }
    await say(graph, "@ say done", config);
    expect(seen).toEqual(descriptor.hooks);
    expect(seen.length).toBeGreaterThan(4);
  });

  it("R174 the tools it holds are the graph's own objects", async () => {
    const { graph, descriptor, config } = leadFixture();
    const ls = descriptor.parts.tools.find((tool) => tool.name === "ls")!;
    const original = { ...ls };
    Object.assign(ls, { execute: async () => ({ status: "success", content: "from the descriptor's tool" }) });
    const state = await say(graph, '@ call ls {"path": "/"}\n@ say {{result:1}}', config);
    Object.assign(ls, original);
    expect(state.messages.at(-1)?.text).toBe("from the descriptor's tool");
  });

  it("R174 prompt and chain are made once, and the caller's policy is the object that was given", () => {
    const { config, options } = leadFixture();
    const reads = { instructions: 0, retries: 0 };
    const agents = {
      custom: {},
      get lead_instructions() {
        reads.instructions += 1;
        return "Be brief.";
      },
    };
    const deputy = {
      ...options.deputy,
      agents,
      get llm_call() {
        reads.retries += 1;
        return options.deputy.llm_call;
      },
    };
    const allowedSubagents = ["bash"];
    const { descriptor } = assembleLeadAgent(config, { ...options, deputy, allowedSubagents });
    expect(reads).toEqual({ instructions: 1, retries: 1 });
    expect(descriptor.parts.allowedSubagents).toBe(allowedSubagents);
    expect(descriptor.subagents).toEqual(["bash"]);
    expect(sha256(descriptor.parts.systemPrompt)).toBe(descriptor.promptSha256);
  });
});
