/**
 * What a child under test does, step by step, whichever provider runs it; and how a child graph in this process does it.
 */
import { AIMessage } from "@langchain/core/messages";
import type { ModelRequest } from "../../src/agent/models/model.ts";
import type { ChildAgent, SubagentRequest } from "../../src/agent/subagents/provider.ts";
import { fixtureServices, plainTool, succeeded } from "./agent-fixture.ts";
import { ReplyModel } from "./reply-model.ts";

/** Work that goes on until the test opens it, whatever the child's signal says. */
export interface Gate {
  readonly reached: Promise<void>;
  open(): void;
  /** The child's side. */
  pass(): Promise<void>;
}

export function gate(): Gate {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    open: () => opened.resolve(),
    pass: async () => {
      reached.resolve();
      await opened.promise;
    },
  };
}

/** The last step ends the child, `settles` does until it is resumed; any other `says` is followed by further work. */
export type ChildStep =
  | { readonly says: string; readonly ends?: "length" | "content_filter"; readonly settles?: true }
  | { readonly fails: string }
  | { readonly holds: Gate };

export type ChildPlan = readonly ChildStep[];

export interface PlannedChild {
  readonly request: SubagentRequest;
  /** Model requests of the child, in order. */
  readonly asked: readonly ModelRequest[];
}

/** Gives one child of this process by its plan. Past the plan's end it fails: no test takes a turn it did not plan. */
export function plannedChild(plan: ChildPlan, more: Partial<SubagentRequest> = {}): PlannedChild {
  let at = 0;
  const model = new ReplyModel(() => {
    const step = plan[at];
    at += 1;
    if (step === undefined) throw new Error(`turn ${at} was not planned`);
    return toAnswer(step, at, at === plan.length);
  });
  const hold = plainTool("hold", async () => {
    const step = plan[at - 1];
    if (step !== undefined && "holds" in step) await step.holds.pass();
    return succeeded("held");
  });
  const agent: ChildAgent = { name: "worker", systemPrompt: "", model, tools: [hold], hooks: [], maxTurns: 20 };
  const parent = { name: "lead", depth: 0, config: {}, services: fixtureServices(), checkpointer: false } as const;
  const { signal } = new AbortController();
  return { asked: model.requests, request: { id: "child-1", prompt: "work", agent, parent, signal, ...more } };
}

/** Gives a child that reports these values by its tool for structured output, one a turn. */
export function reportingChild(
  values: readonly Record<string, unknown>[],
  more: Partial<SubagentRequest> = {},
): PlannedChild {
  const { request } = plannedChild([], more);
  const model = new ReplyModel(({ messages }) => {
    const turn = messages.filter(({ type }) => type === "ai").length;
    const call = { id: `report-${turn}`, name: "structured_output", args: values[turn] ?? {} };
    return new AIMessage({ content: "", tool_calls: [{ ...call, type: "tool_call" as const }] });
  });
  return { asked: model.requests, request: { ...request, agent: { ...request.agent, model } } };
}

function toAnswer(step: ChildStep, turn: number, isLast: boolean): AIMessage {
  if ("fails" in step) throw new Error(step.fails);
  const goesOn = "holds" in step || !(isLast || step.settles === true);
  const tool_calls = goesOn ? [{ id: `call-${turn}`, name: "hold", args: {}, type: "tool_call" as const }] : [];
  const finish = "ends" in step && step.ends !== undefined ? step.ends : "stop";
  const content = "says" in step ? step.says : "";
  return new AIMessage({ content, tool_calls, response_metadata: { finish_reason: finish } });
}
