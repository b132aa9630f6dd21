import { describe, expect, it } from "vitest";
import { classifyPlatformError } from "../../../src/domain/run/recovery-errors.ts";

const marked = (message: string, marks: object) => Object.assign(new Error(message), marks);
const wrapped = (error: unknown, depth: number): unknown =>
  depth === 0 ? error : wrapped(new Error("wrapper", { cause: error }), depth - 1);

describe("classifyPlatformError", () => {
  it.each([
    ["superseded", new Error("Durable Object reset because its code was updated.")],
    [
      "superseded",
      new Error("This script has been upgraded. Please send a new request to connect to the new version."),
    ],
    ["superseded", marked("reset because its code was updated", { retryable: true })],
    ["superseded", new Error("Connection closed: this Durable Object instance is no longer active")],
    ["transient", new Error("Network connection lost.")],
    ["transient", new Error("Internal error in Durable Object storage caused object to be reset.")],
    ["transient", marked("try later", { retryable: true })],
    ["out_of_memory", new Error("Durable Object's isolate exceeded its memory limit and was reset.")],
    ["out_of_memory", marked("exceeded its memory limit", { retryable: true, overloaded: true })],
    ["application", marked("Durable Object is overloaded.", { retryable: true, overloaded: true })],
    ["application", new Error("the graph's own failure")],
    ["application", { message: 7 }],
    ["application", "Network connection lost."],
    ["application", null],
    ["transient", wrapped(new Error("Network connection lost."), 8)],
    ["application", wrapped(new Error("Network connection lost."), 9)],
  ])("%s: %s", (kind, error) => {
    expect(classifyPlatformError(error)).toBe(kind);
  });

  it("ends on errors that cause each other", () => {
    const one: { cause?: unknown } = {};
    one.cause = { cause: one };
    expect(classifyPlatformError(one)).toBe("application");
  });
});
