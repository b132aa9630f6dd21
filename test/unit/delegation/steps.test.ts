import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toDelegationKwargs } from "../../../src/domain/delegation/delegation-result.ts";
import {
  STEP_CHARS_MAX,
  toSubagentEnd,
  toSubagentStart,
  toSubagentStep,
} from "../../../src/domain/delegation/subagent-steps.ts";
import { toTerminalTaskEvent } from "../../../src/domain/delegation/task-events.ts";
import { toLiveStep } from "../../../src/agent/subagents/live-step.ts";
import { StepCapture, toStepMessage } from "../../../src/agent/subagents/step-capture.ts";

const ai = (id: string, text = id): AIMessage => new AIMessage({ id, content: text });
const tool = (id: string): ToolMessage =>
  new ToolMessage({ id, content: id, tool_call_id: `${id}-call`, name: "look" });

describe("capture", () => {
  test("R112 R113 R114 assistant and tool messages are steps, each once; a history that was rewritten repeats nothing", () => {
    const capture = new StepCapture();
    const ids = (messages: Parameters<StepCapture["capture"]>[0]) => capture.capture(messages).map((each) => each.id);
    expect(ids([new HumanMessage({ id: "h", content: "go" }), ai("ai1"), tool("tool1")])).toEqual(["ai1", "tool1"]);
    expect(ids([ai("ai1"), tool("tool1"), ai("ai2")])).toEqual(["ai2"]);
    expect(ids([ai("ai2")])).toEqual([]);
    expect(ids([ai("ai2"), tool("tool2"), ai("ai3")])).toEqual(["tool2", "ai3"]);
  });

  test("a step that a rewrite of the history put before known ones is told", () => {
    const capture = new StepCapture();
    capture.capture([ai("ai1"), tool("tool1"), ai("ai2")]);
    expect(capture.capture([ai("ai0"), ai("ai2")]).map((each) => each.id)).toEqual(["ai0"]);
  });

  test("R112 R114 R122 whatever a history does (several at once, nothing, shrinking, coming back), each step is told once, in order", () => {
    const growth = fc.record({ adds: fc.nat({ max: 4 }), keeps: fc.nat({ max: 6 }) });
    fc.assert(
      fc.property(fc.array(growth, { maxLength: 12 }), (chunks) => {
        const capture = new StepCapture();
        const told: unknown[] = [];
        let history: BaseMessage[] = [];
        let made = 0;
        for (const { adds, keeps } of chunks) {
          // A compaction keeps the tail; what comes next is appended to it, in the same chunk.
          history = history.slice(-keeps || history.length);
          for (let at = 0; at < adds; at += 1) history.push((made % 3 === 0 ? ai : tool)(`m${(made += 1)}`));
          told.push(...capture.capture(history).map(({ id }) => id));
          expect(capture.capture(history)).toEqual([]);
        }
        expect(told).toEqual(Array.from({ length: made }, (_, at) => `m${at + 1}`));
      }),
    );
  });

  test("messages without ids are told apart by their content", () => {
    const capture = new StepCapture();
    expect(capture.capture([new AIMessage("one")])).toHaveLength(1);
    expect(capture.capture([new AIMessage("one"), new AIMessage("two")])).toHaveLength(1);
  });
});

describe("persisted steps", () => {
  test("R117 a malformed chunk is refused with the field that is wrong", () => {
    const message = { kind: "ai", text: "x" };
    const field = (...args: Parameters<typeof toSubagentStep>) => {
      const step = toSubagentStep(...args);
      return step.ok ? undefined : step.error.field;
    };
    expect(field("t", 0, message)).toBeUndefined();
    expect(field("", 0, message)).toBe("task_id");
    expect(field(7, 0, message)).toBe("task_id");
    for (const index of [-1, 1.5, "1", true, null, Number.NaN])
      expect(field("t", index, message)).toBe("message_index");
    for (const bad of [null, "text", [], {}, { kind: "human", text: "x" }, { kind: "ai" }]) {
      expect(field("t", 0, bad)).toBe("message");
    }
    expect(field("t", 0, { kind: "ai", text: "x", toolCalls: [{ args: {} }] })).toBe("message");
  });

  test("R118 text and each call's arguments are capped and flagged", () => {
    const long = "é".repeat(STEP_CHARS_MAX + 1);
    const message = new AIMessage({
      id: "a",
      content: long,
      tool_calls: [
        { id: "1", name: "short", args: { a: 1 } },
        { id: "2", name: "long", args: { text: long } },
      ],
    });
    const step = toSubagentStep("t", 3, toStepMessage(message));
    expect(step.ok && step.value).toMatchObject({
      task_id: "t",
      message_index: 3,
      kind: "ai",
      text: "é".repeat(STEP_CHARS_MAX),
      truncated: true,
      tool_calls: [
        { name: "short", args: { a: 1 } },
        { name: "long", args_truncated: true },
      ],
    });
    const [, cut] = (step.ok && step.value.tool_calls) || [];
    expect(Array.from(String(cut?.args)).length).toBe(STEP_CHARS_MAX);
  });

  test("R118 the live frame of a step carries the same cap", () => {
    const live = toLiveStep(new ToolMessage({ id: "t", content: "x".repeat(50_000), tool_call_id: "c" }));
    expect(String(live.content).length).toBe(STEP_CHARS_MAX);
    expect(live).toMatchObject({ type: "tool", id: "t", tool_call_id: "c" });
  });

  test("R118 a cap counts code points: it never leaves half a character, in the log and live alike", () => {
    const long = "😀".repeat(STEP_CHARS_MAX + 1);
    const call = { name: "look", args: { long } };
    const step = toSubagentStep("t", 0, { kind: "ai", text: long, toolCalls: [call] });
    if (!step.ok) throw new Error(step.error.field);
    expect(step.value.text).toBe("😀".repeat(STEP_CHARS_MAX));
    const logged = String(step.value.tool_calls?.[0]?.args);
    expect(Array.from(logged)).toHaveLength(STEP_CHARS_MAX);
    const live = toLiveStep(
      new AIMessage({ id: "a", content: long, tool_calls: [{ ...call, id: "c", type: "tool_call" }] }),
    );
    const shown = [logged, live.content as string, String((live.tool_calls as { args: unknown }[])[0]?.args)];
    expect(shown.map((text) => [text.isWellFormed(), Array.from(text).length <= STEP_CHARS_MAX])).toEqual(
      Array.from(shown, () => [true, true]),
    );
    expect(toSubagentStep("t", 0, { kind: "ai", text: "😀".repeat(STEP_CHARS_MAX) })).toMatchObject({
      value: { truncated: false },
    });
  });

  test("a tool step names its tool", () => {
    const step = toSubagentStep("t", 0, toStepMessage(tool("tool1")));
    expect(step.ok && step.value).toEqual({
      task_id: "t",
      message_index: 0,
      kind: "tool",
      text: "tool1",
      truncated: false,
      tool_name: "look",
    });
  });

  test("R115 start and end events carry what readers need, from the result message alone", () => {
    expect(toSubagentStart("t", null)).toEqual({ task_id: "t", description: null });
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const kwargs = toDelegationKwargs({ status: "completed", result: "42", usage, modelName: "m" });
    expect(toSubagentEnd("t", kwargs, "Task Succeeded. Result: 42")).toEqual({
      task_id: "t",
      status: "completed",
      model_name: "m",
      usage,
      result: "42",
    });
    const capped = toDelegationKwargs({ status: "completed", result: "42", stopReason: "turn_capped" });
    expect(toSubagentEnd("t", capped, "Task Succeeded (capped: turn budget). Result: 42")?.result).toBe("42");
    const failed = toDelegationKwargs({ status: "failed", error: "boom" });
    expect(toSubagentEnd("t", failed, "Task failed. Error: boom")).toEqual({
      task_id: "t",
      status: "failed",
      error: "boom",
    });
    expect(toSubagentEnd("t", {}, "Task Succeeded. Result: forged")).toBeUndefined();
    const long = toSubagentEnd("t", capped, `Task Succeeded. Result: ${"x".repeat(STEP_CHARS_MAX + 1)}`);
    expect(long).toMatchObject({ result: "x".repeat(STEP_CHARS_MAX), result_truncated: true });
  });
});

test("R85 each outcome has its event, with error and usage even when empty", () => {
  const event = (status: "failed" | "cancelled" | "timed_out") => toTerminalTaskEvent("t", { status, modelName: "m" });
  const rest = { task_id: "t", error: "", usage: null, model_name: "m" };
  expect(event("failed")).toEqual({ type: "task_failed", ...rest });
  expect(event("cancelled")).toEqual({ type: "task_cancelled", ...rest });
  expect(event("timed_out")).toEqual({ type: "task_timed_out", ...rest });
});
