import { AIMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { boundDiagnostic, describeThrown, DIAGNOSTIC_BYTES_MAX } from "../../../src/agent/subagents/diagnostic.ts";
import { spawnProvider } from "../../../src/agent/subagents/providers/spawn.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { plannedChild } from "../../support/child-plan.ts";
import { delegatesOnce, delegationFixture, runLead, taskResults } from "../../support/delegation-fixture.ts";
import { resultsIn } from "../../support/reply-model.ts";

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

describe("P8 a diagnostic", () => {
  test.each(["a", "é", "漢", "😀"])("is cut in bytes, its mark included, and never inside %s", (character) => {
    const fits = character.repeat(Math.floor(DIAGNOSTIC_BYTES_MAX / bytesOf(character)));
    expect(boundDiagnostic(fits)).toBe(fits);
    for (let shift = 0; shift < 4; shift += 1) {
      const cut = boundDiagnostic("x".repeat(shift) + fits + character);
      expect(bytesOf(cut)).toBeLessThanOrEqual(DIAGNOSTIC_BYTES_MAX);
      expect(bytesOf(cut)).toBeGreaterThan(DIAGNOSTIC_BYTES_MAX - 4);
      expect(cut).toMatch(/… \[cut\]$/);
      expect(cut).not.toContain("\uFFFD");
    }
  });

  test("of whatever was thrown is text", () => {
    expect(describeThrown(new RangeError("too far"))).toBe("RangeError: too far");
    expect(describeThrown("plain")).toBe("plain");
    expect(describeThrown(Object.create(null))).toBe("a value that cannot be shown was thrown");
    expect(bytesOf(describeThrown("é".repeat(DIAGNOSTIC_BYTES_MAX)))).toBeLessThanOrEqual(DIAGNOSTIC_BYTES_MAX);
  });

  test("of a child is bounded where the child is run", async () => {
    const run = await spawnProvider().start(plannedChild([{ fails: "😀".repeat(DIAGNOSTIC_BYTES_MAX) }]).request);
    const { diagnostic = "" } = await run.result;
    expect(bytesOf(diagnostic)).toBeLessThanOrEqual(DIAGNOSTIC_BYTES_MAX);
    expect(diagnostic).toMatch(/^😀+… \[cut\]$/u);
    await run.dispose();
  });
});

test("R145 the result of a child that did not complete is its headline, the diagnostic, then its partial text", async () => {
  const fixture = delegationFixture({
    tools: [plainTool("look", () => succeeded("TOOL-OUTPUT"))],
    lead: delegatesOnce({ id: "call_a", prompt: "count" }),
    child: (request) => {
      if (resultsIn(request).length > 0) throw new Error("model is down");
      const tool_calls = [{ id: "inner", name: "look", args: { secret: "TOOL-INPUT" }, type: "tool_call" as const }];
      return new AIMessage({ content: "halfway there", tool_calls });
    },
  });
  const [result] = taskResults((await runLead(fixture)).state);
  expect(result?.status).toBe("error");
  expect(result?.text).toBe("Task failed. Error: model is down\nPartial output, not a result: halfway there");
  expect(JSON.stringify(result)).not.toMatch(/TOOL-(INPUT|OUTPUT)/);
});
