/**
 * The `acp` provider: a child that an agent of another process is, reached over the Agent Client Protocol by WebSocket.
 * Owns the start and its clean-up. Invariants: an aborted request connects to nothing; the run exists once the agent gave
 * a session, and whatever fails before closes the connection; the agent has its own prompt, tools and model, so that a
 * request that brings any is refused. What it does happens outside: its start is never repeated.
 */
import { threadIdOf } from "../../graph/thread-id.ts";
import type { ChildAgent, SubagentProvider, SubagentRequest, SubagentRun } from "../provider.ts";
import { SubagentError } from "../subagent-error.ts";
import type { Timers } from "../timers.ts";
import { ConnectionFault, type OpenWebSocket } from "../web-socket.ts";
import { ACP_START_MS } from "./acp-limits.ts";
import { AcpRun } from "./acp-run.ts";
import { AcpSession } from "./acp-session.ts";
import { AcpTranscript } from "./acp-transcript.ts";

export const ACP_PROVIDER_NAME = "acp";

export interface AcpProviderPorts {
  readonly openWebSocket: OpenWebSocket;
  readonly timers: Timers;
}

export function acpProvider(ports: AcpProviderPorts): SubagentProvider {
  return {
    name: ACP_PROVIDER_NAME,
    capabilities: { outputSchema: false, depthLimit: false, toolFilter: false, persona: false },
    inheritsParentContext: false,
    startsOnce: true,
    start: (request) => start(request, ports),
  };
}

async function start(request: SubagentRequest, { openWebSocket, timers }: AcpProviderPorts): Promise<SubagentRun> {
  request.signal.throwIfAborted();
  const endpoint = endpointOf(request.agent);
  const transcript = new AcpTranscript({
    newId: () => request.parent.services.newId(),
    tell: (message) => request.onMessage?.(message, "new"),
  });
  const limit = new AbortController();
  const timer = timers.set(ACP_START_MS, () => limit.abort(new ConnectionFault(TOO_SLOW)));
  const signal = AbortSignal.any([request.signal, limit.signal]);
  const session = new AcpSession(endpoint, { openWebSocket, timers, transcript });
  try {
    await unlessAborted(session.open(scopeOf(request), signal), signal);
  } catch (error) {
    const reason = session.faultOf(error);
    await session.close();
    request.signal.throwIfAborted();
    throw new ConnectionFault(`The subagent '${request.agent.name}' could not be started: ${reason}`, { cause: error });
  } finally {
    timers.clear(timer);
  }
  return new AcpRun({ request, session, transcript, timers });
}

const TOO_SLOW = `the agent gave no session within ${ACP_START_MS / 1_000} s`;

function endpointOf({ name, endpoint, systemPrompt, tools, hooks }: ChildAgent) {
  if (endpoint === undefined) throw new TypeError(`the subagent '${name}' has no endpoint of an agent`);
  const brought = [
    ...(systemPrompt === "" ? [] : ["a system prompt"]),
    ...(tools.length === 0 ? [] : ["tools"]),
    ...(hooks.length === 0 ? [] : ["hooks"]),
  ];
  if (brought.length === 0) return endpoint;
  const message = `provider '${ACP_PROVIDER_NAME}' does not support ${brought.join(", ")}: the agent has its own`;
  throw new SubagentError("UNSUPPORTED_CAPABILITY", message);
}

/** Connections of one thread are counted together, as its model requests are. */
function scopeOf({ parent }: SubagentRequest): string {
  return threadIdOf(parent.config) ?? "";
}

/** Rejects at the abort, whatever the work does about it. */
async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    // A late failure of an abandoned start has nobody to tell.
    work.catch(() => undefined);
  }
}
