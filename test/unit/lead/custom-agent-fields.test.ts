/** Every field a client can write on its way to a model: assistant and run, through the gateway's and the object's own code. */
import { HumanMessage } from "@langchain/core/messages";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { BuiltGraph } from "../../../src/agent/graph-catalog.ts";
import type { StoredAssistant } from "../../../src/domain/assistant/assistant.ts";
import { buildConfig, runConfig } from "../../../src/durable-objects/run-config.ts";
import type { AssistantDeps } from "../../../src/gateway/assistants.ts";
import { toRunCommand } from "../../../src/gateway/run-command.ts";
import type { RunRecord } from "../../../src/platform/durable-storage/run-store.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import { taskCalls } from "../../support/delegation-fixture.ts";
import { leadFixture } from "../../support/lead-fixture.ts";
import { catalogOf, promptOf, ReplyModel, resultsIn, textAnswer } from "../../support/reply-model.ts";

const MARK = "Marker";

/** What the gateway asks of its ports when a run names a stored assistant. */
function depsWith(stored: StoredAssistant): AssistantDeps {
  const assistants = { find: async () => stored } as unknown as AssistantDeps["assistants"];
  const lead = { graph_id: "lead_agent", name: "lead_agent", description: null };
  return {
    assistants,
    operatorAgents: [],
    assistantId: (name) => `id of ${name}`,
    graphs: {
      graphs: () => [lead],
      models: () => ["reply"],
      describe: async () => ({ ok: false, error: { message: "not asked" } }) as const,
    },
  };
}

function assistantOf(text: string): StoredAssistant {
  const metadata = { [text]: text };
  return {
    assistantId: "mine",
    graphId: "lead_agent",
    name: text,
    description: text,
    config: {
      configurable: { instructions: text, allowed_subagents: ["bash", MARK], [text]: text, agent: { text } },
      tags: [text],
      metadata,
    },
    context: { [text]: text, persona: text, system_prompt: text },
    metadata,
    version: 1,
    createdAt: 0,
    updatedAt: 0,
  };
}

it("R172 R173 P6 no field of an assistant or a run reaches System or a tool's description; instructions reach the human channel", async () => {
  const piece = fc.oneof(fc.constantFrom("</agent_instructions>", "<system>", "\n", "]"), fc.string({ maxLength: 12 }));
  const text = fc.array(piece, { maxLength: 4 }).map((pieces) => [MARK, ...pieces, MARK].join(""));
  await fc.assert(
    fc.asyncProperty(text, text, async (ofAssistant, ofRun) => {
      const body = createRunBodySchema.parse({
        assistant_id: "mine",
        input: { messages: [] },
        config: { configurable: { lead_instructions: ofRun, operator_instructions: ofRun }, tags: [ofRun] },
        context: { description: ofRun, [ofRun]: ofRun },
        metadata: { note: ofRun, allowed_subagents: [ofRun] },
      });
      const caller = { owner: "alice", headers: new Headers({ "x-note": MARK }) };
      const command = await toRunCommand(depsWith(assistantOf(ofAssistant)), body, caller);
      if (!command.ok) throw new Error(command.error.message);
      const run = { runId: "run-1", graphId: "lead_agent", command: command.value } as unknown as RunRecord;
      const model = new ReplyModel((request) => {
        const isFirst = promptOf(request) === "go" && resultsIn(request).length === 0;
        return isFirst ? taskCalls({ id: "call_1", prompt: "work", type: "bash" }) : textAnswer("done");
      });
      const { configurable } = buildConfig(run);
      const agent = command.value.agent!;
      const lead = leadFixture({ models: catalogOf(model), configurable: { ...configurable }, agent });
      const built = { configurable: { thread_id: "thread-1" }, recursionLimit: 50 } as unknown as BuiltGraph;
      await lead.graph.invoke({ messages: [new HumanMessage({ id: "h1", content: "go" })] }, runConfig(run, built));
      expect(model.requests).toHaveLength(3);
      for (const { messages, tools } of model.requests) {
        const system = messages.filter((message) => message.getType() === "system").map((message) => message.text);
        expect(JSON.stringify([system, tools.map(({ name, description }) => [name, description])])).not.toContain(MARK);
      }
      const human = model.requests[0]!.messages.filter((message) => message.text.includes(MARK));
      expect(human.map((message) => message.getType())).toEqual(["human"]);
      expect(human[0]!.text.startsWith("<agent_instructions>\n")).toBe(true);
      const child = model.requests.find((request) => promptOf(request) === "work")!;
      expect(JSON.stringify(child.messages)).not.toContain(MARK);
    }),
    { numRuns: 10 },
  );
});
