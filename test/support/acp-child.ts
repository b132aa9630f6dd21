/** A request for a child that is the test agent, and the plan of the providers' suite as it follows it. */
import type { AcpEndpoint } from "../../src/domain/delegation/acp-endpoint.ts";
import { openNodeWebSocket } from "../../src/agent/subagents/node-web-socket.ts";
import { remoteChild } from "../../src/agent/subagents/remote-child.ts";
import type { SubagentRequest } from "../../src/agent/subagents/provider.ts";
import type { OpenWebSocket } from "../../src/agent/subagents/web-socket.ts";
import { fixtureServices } from "./agent-fixture.ts";
import type { AcpAgentProcess } from "./acp-agent-process.ts";
import type { AgentStep } from "./acp-agent.ts";
import type { ChildPlan } from "./child-plan.ts";

export function acpRequest(
  endpoint: Partial<AcpEndpoint> & Pick<AcpEndpoint, "url">,
  plan: readonly AgentStep[] | string,
  more: Partial<SubagentRequest> = {},
): SubagentRequest {
  return {
    id: "child-1",
    prompt: typeof plan === "string" ? plan : JSON.stringify(plan),
    agent: remoteChild({
      name: "worker",
      model: "inherit",
      maxTurns: 1,
      acp: { headers: {}, cwd: "/", permission: "reject", ...endpoint },
    }),
    parent: { name: "lead", depth: 0, config: {}, services: fixtureServices(), checkpointer: false },
    signal: new AbortController().signal,
    ...more,
  };
}

let lastGate = 0;

/** Gates of the plan are gates of the agent's process: reached and opened there. */
function toAgentPlan(plan: ChildPlan, agent: AcpAgentProcess): readonly AgentStep[] {
  return plan.map((step) => {
    if (!("holds" in step)) return step;
    lastGate += 1;
    const id = `gate-${lastGate}`;
    void agent
      .reached(id)
      .then(() => step.holds.pass())
      .then(() => agent.open(id))
      .catch(() => undefined);
    return { holds: id };
  });
}

/** A planned child of the agent's process; every connection and every prompt that is sent counts as asked. */
export function acpChild(agent: AcpAgentProcess) {
  const asked: unknown[] = [];
  const openWebSocket: OpenWebSocket = async (target, events, signal) => {
    asked.push(target.url);
    const socket = await openNodeWebSocket(target, events, signal);
    const send = (text: string): void => {
      if (text.includes('"session/prompt"')) asked.push(text);
      socket.send(text);
    };
    return { send, close: (code) => socket.close(code) };
  };
  const child = (plan: ChildPlan, more: Partial<SubagentRequest> = {}) => {
    asked.length = 0;
    // In the address, so that a case may have a prompt of its own.
    const steps = encodeURIComponent(JSON.stringify(toAgentPlan(plan, agent)));
    return { asked, request: acpRequest({ url: agent.url(`plan=${steps}`) }, "work", more) };
  };
  return { openWebSocket, child };
}
