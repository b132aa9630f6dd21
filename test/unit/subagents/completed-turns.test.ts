import { AIMessage, HumanMessage, SystemMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { completedTurns, withoutOpenCalls } from "../../../src/agent/subagents/completed-turns.ts";

const human = (id: string) => new HumanMessage({ id, content: id });
const answer = (id: string, ...calls: readonly (string | undefined)[]) =>
  new AIMessage({
    id,
    content: id,
    tool_calls: calls.map((call) => ({
      name: "look",
      args: {},
      type: "tool_call" as const,
      ...(call !== undefined && { id: call }),
    })),
  });
const result = (call: string, id = `r-${call}`) => new ToolMessage({ id, content: "seen", tool_call_id: call });
const ids = (messages: readonly BaseMessage[]) => messages.map(({ id }) => id).join(" ");

test.each([
  ["nothing", [], "", ""],
  ["a first question, answered by nothing yet", [human("h1")], "h1", ""],
  ["the delegating call of a first turn", [human("h1"), answer("a1", "c1")], "h1", ""],
  ["a whole turn", [human("h1"), answer("a1")], "h1 a1", "h1 a1"],
  [
    "a whole turn and the one going on",
    [human("h1"), answer("a1"), human("h2"), answer("a2", "c1", "c2")],
    "h1 a1 h2",
    "h1 a1",
  ],
  [
    "a complete group of the turn going on",
    [human("h1"), answer("a1", "c1"), result("c1"), answer("a2", "c2")],
    "h1 a1 r-c1",
    "h1 a1 r-c1",
  ],
  ["a group with one of two results", [human("h1"), answer("a1", "c1", "c2"), result("c1"), human("h2")], "h1 h2", ""],
  [
    "a dangling group in the middle",
    [human("h1"), answer("a1", "c1"), human("h2"), answer("a2")],
    "h1 h2 a2",
    "h1 h2 a2",
  ],
  [
    "the same call id in two groups, open in the second",
    [answer("a1", "c1"), result("c1", "r1"), answer("a2", "c1")],
    "a1 r1",
    "a1 r1",
  ],
  ["a result of no call", [human("h1"), result("c9"), answer("a1"), result("c8")], "h1 a1", "h1 a1"],
  ["a call without an id", [human("h1"), answer("a1", undefined)], "h1", ""],
  ["a stored system message", [new SystemMessage({ id: "s1", content: "s" }), answer("a1")], "s1 a1", "s1 a1"],
] as const)(
  "P5 a history with %s: no open call is left, and turns end with their last group",
  (_what, all, closed, done) => {
    expect(ids(withoutOpenCalls(all))).toBe(closed);
    expect(ids(completedTurns(all))).toBe(done);
  },
);
