/** From a validated create body to the command a thread's object takes. */
import { type Result, ok } from "../domain/shared/result.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import type { CreateRunBody } from "../protocol/runs.ts";
import type { RunCommand } from "../protocol/thread-rpc.ts";
import { findAssistant } from "./assistants.ts";
import { FORWARDED_HEADER_BYTES_MAX } from "./bounds.ts";
import { refuse } from "./errors.ts";
import type { GatewayDeps } from "./ports.ts";

type Graphs = Pick<GatewayDeps, "graphs" | "assistantId">;

export function toRunCommand(deps: Graphs, body: CreateRunBody, headers: Headers): Result<RunCommand, ApiRefusal> {
  const assistant = findAssistant(deps, body.assistant_id);
  if (!assistant.ok) return assistant;
  const forwarded = forwardedHeaders(headers);
  if (!forwarded.ok) return forwarded;
  const { assistant_id, graph_id } = assistant.value;
  return ok({ graph_id, body: { ...body, assistant_id }, headers: forwarded.value });
}

/** Credentials, and what proxies add about the caller's network: neither belongs in stored configuration. */
const KEPT_BACK = /^x-(api-key|forwarded-.*|real-ip|request-id)$/;

/** `x-*` headers reach the graph's `config.configurable`, as graphs written for the LangGraph server expect. */
function forwardedHeaders(headers: Headers): Result<Record<string, string>, ApiRefusal> {
  const entries = [...headers].filter(([name]) => name.startsWith("x-") && !KEPT_BACK.test(name));
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (bytes <= FORWARDED_HEADER_BYTES_MAX) return ok(Object.fromEntries(entries));
  const limit = { limit_bytes: FORWARDED_HEADER_BYTES_MAX };
  return refuse("too_large", `The x-* headers are larger than ${FORWARDED_HEADER_BYTES_MAX} bytes.`, limit);
}
