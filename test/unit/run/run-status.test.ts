import { describe, expect, it } from "vitest";
import { decideThreadStatus } from "../../../src/domain/run/run-status.ts";

describe("decideThreadStatus", () => {
  it.each([
    ["pending", false, "busy"],
    ["running", false, "busy"],
    ["success", false, "idle"],
    ["error", false, "error"],
    ["timeout", false, "error"],
    ["interrupted", false, "idle"],
    ["interrupted", true, "interrupted"],
  ] as const)("a newest run that is %s (waits: %s) makes the thread %s", (status, waitsForAnswer, expected) => {
    expect(decideThreadStatus({ status, waitsForAnswer })).toBe(expected);
  });

  it("calls a thread without runs idle", () => {
    expect(decideThreadStatus(undefined)).toBe("idle");
  });
});
