import { describe, expect, test } from "vitest";
import { forkProvider } from "../../src/agent/subagents/providers/fork.ts";
import { spawnProvider } from "../../src/agent/subagents/providers/spawn.ts";
import type { SubagentRequest, SubagentRun } from "../../src/agent/subagents/provider.ts";
import type { SubagentLifecycleEvent, SubagentListener } from "../../src/agent/subagents/subagent-service.ts";
import { plannedChild, reportingChild } from "../support/child-plan.ts";
import { providerSuite, tellsEveryListener } from "../support/provider-suite.ts";

describe.each([
  ["spawn", spawnProvider],
  ["fork", forkProvider],
])("the %s provider", (_name, provider) => {
  providerSuite({ provider, child: plannedChild, reporting: reportingChild });
});

test("R140 R151 a provider is told apart by whether its children can be steered and resumed", async () => {
  for (const [provider, isSteerable] of [
    [spawnProvider(), false],
    [forkProvider(), true],
  ] as const) {
    const run = await provider.start(plannedChild([{ says: "42" }]).request);
    expect([run.sendMessage !== undefined, run.resume !== undefined]).toEqual([isSteerable, isSteerable]);
    expect(provider.inheritsParentContext).toBe(isSteerable);
    await run.dispose();
  }
});

/** The mistake the listener test is there for: one `try` around all listeners of an event. */
class PerEmitGuard {
  readonly #listeners: SubagentListener[] = [];

  listen(listener: SubagentListener): () => void {
    this.#listeners.push(listener);
    return () => {};
  }

  async start(provider: string, request: SubagentRequest): Promise<SubagentRun> {
    const run = await spawnProvider().start(request);
    const pair = { runId: "run-1", provider, id: run.id };
    this.#emit({ type: "subagent/start", ...pair });
    void run.result.then(({ stopReason }) => this.#emit({ type: "subagent/end", ...pair, stopReason }));
    return run;
  }

  #emit(event: SubagentLifecycleEvent): void {
    try {
      for (const listener of this.#listeners) listener(event);
    } catch {
      // The second listener is never asked.
    }
  }
}

test("R157 the listener test of the suite fails on a guard around the whole emit", async () => {
  const { request } = plannedChild([{ says: "42" }]);
  await expect(tellsEveryListener(new PerEmitGuard(), "spawn", request)).rejects.toThrow(/subagent\/start/);
});
