import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { acpProvider } from "../../src/agent/subagents/providers/acp.ts";
import { systemTimers } from "../../src/agent/subagents/timers.ts";
import { AcpAgentProcess } from "../support/acp-agent-process.ts";
import { acpChild } from "../support/acp-child.ts";
import { providerSuite } from "../support/provider-suite.ts";

let agent: AcpAgentProcess;
let planned: ReturnType<typeof acpChild>;

beforeAll(async () => {
  agent = await AcpAgentProcess.start();
  planned = acpChild(agent);
});
afterAll(() => agent.stop());

describe("R158 the acp provider, against an agent in a process of its own", () => {
  providerSuite({
    provider: () =>
      acpProvider({ openWebSocket: (...opening) => planned.openWebSocket(...opening), timers: systemTimers }),
    child: (plan, more) => planned.child(plan, more),
  });

  test("R140 R151 its children can be neither steered nor resumed, and see nothing of the parent's", async () => {
    const { openWebSocket, child } = planned;
    const provider = acpProvider({ openWebSocket, timers: systemTimers });
    const run = await provider.start(child([{ says: "42" }]).request);
    expect(["sendMessage" in run, "resume" in run, provider.inheritsParentContext]).toEqual([false, false, false]);
    await run.dispose();
  });
});
