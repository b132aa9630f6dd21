/**
 * The registry of providers and the one way to start a child on any of them (subagent-seam 1.1, 1.3, 1.8).
 * Owns the check order and lifecycle events. Invariants: an unsupported option is refused before anything exists; start
 * precedes end; a listener that throws hides nothing from the next one and changes nothing about the run.
 */
import { SubagentError } from "./subagent-error.ts";
import type { SubagentProvider, SubagentRequest, SubagentRun, SubagentRunStopReason, TextBlock } from "./provider.ts";

export interface SubagentStartEvent {
  readonly type: "subagent/start";
  /** Pairs start and end; provider names and child ids may repeat. */
  readonly runId: string;
  readonly provider: string;
  readonly id: string;
}

export interface SubagentEndEvent extends Omit<SubagentStartEvent, "type"> {
  readonly type: "subagent/end";
  readonly stopReason: SubagentRunStopReason;
  /** Absent when the child said nothing. */
  readonly lastAssistantMessage?: readonly TextBlock[];
}

export type SubagentLifecycleEvent =
  | SubagentStartEvent
  | SubagentEndEvent
  | { readonly type: "subagent/provider-added"; readonly provider: SubagentProvider }
  | { readonly type: "subagent/provider-removed"; readonly name: string };

/** Observes only. A returned promise is adopted; its rejection is reported. */
export type SubagentListener = (event: SubagentLifecycleEvent) => unknown;

export interface SubagentServicePorts {
  readonly newId: () => string;
  /** Told what a listener threw. */
  readonly reportFault: (what: string, error: unknown) => void;
}

export class SubagentService {
  readonly #ports: SubagentServicePorts;
  readonly #providers = new Map<string, SubagentProvider>();
  readonly #listeners = new Set<SubagentListener>();

  constructor(ports: SubagentServicePorts) {
    this.#ports = ports;
  }

  /** Gives the disposer. A listener that throws on `provider-added` undoes the registration: the registrant must know. */
  register(provider: SubagentProvider): () => void {
    if (this.#providers.has(provider.name)) {
      throw new SubagentError("DUPLICATE_PROVIDER", `a provider '${provider.name}' is registered already`);
    }
    this.#providers.set(provider.name, provider);
    try {
      for (const listener of this.#listeners) listener({ type: "subagent/provider-added", provider });
    } catch (error) {
      this.#providers.delete(provider.name);
      throw error;
    }
    return () => this.#unregister(provider);
  }

  find(name: string): SubagentProvider | undefined {
    return this.#providers.get(name);
  }

  /** Names in the order of registration. */
  list(): readonly string[] {
    return [...this.#providers.keys()];
  }

  listen(listener: SubagentListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Rejects with `SubagentError`, `TypeError` or what the provider threw; then no run and no event exist. */
  async start(providerName: string, request: SubagentRequest): Promise<SubagentRun> {
    const provider = this.#providers.get(providerName);
    if (provider === undefined) throw new SubagentError("NO_PROVIDER", `there is no provider '${providerName}'`);
    checkCapabilities(provider, request);
    checkDepth(request);
    checkSchema(request.outputSchema);
    request.signal.throwIfAborted();
    const run = await provider.start({ ...request });
    this.#observe(provider.name, run);
    return run;
  }

  #unregister(provider: SubagentProvider): void {
    if (this.#providers.get(provider.name) !== provider) return;
    this.#providers.delete(provider.name);
    this.#emit({ type: "subagent/provider-removed", name: provider.name });
  }

  /** Reactions are attached before `start` is told; they cannot run before it, so the order holds. */
  #observe(provider: string, run: SubagentRun): void {
    const pair = { runId: this.#ports.newId(), provider, id: run.id };
    void this.#observeEnd(pair, run);
    this.#emit({ type: "subagent/start", ...pair });
  }

  async #observeEnd(pair: Omit<SubagentStartEvent, "type">, run: SubagentRun): Promise<void> {
    const result = await run.result.catch(() => undefined);
    const said = result !== undefined && result.output.length > 0 ? { lastAssistantMessage: result.output } : {};
    this.#emit({ type: "subagent/end", ...pair, stopReason: result?.stopReason ?? "error", ...said });
  }

  #emit(event: SubagentLifecycleEvent): void {
    for (const listener of this.#listeners) {
      try {
        const returned = listener(event);
        if (returned instanceof Promise) returned.catch((error: unknown) => this.#report(event, error));
      } catch (error) {
        this.#report(event, error);
      }
    }
  }

  #report(event: SubagentLifecycleEvent, error: unknown): void {
    this.#ports.reportFault(`a listener of ${event.type} failed`, error);
  }
}

/** Capabilities in the order they are checked, each with the request's field that needs it. */
const CAPABILITY_FIELDS = [
  ["outputSchema", "outputSchema"],
  ["depthLimit", "maxDepth"],
  ["toolFilter", "toolFilter"],
  ["persona", "persona"],
] as const;

function checkCapabilities(provider: SubagentProvider, request: SubagentRequest): void {
  for (const [capability, field] of CAPABILITY_FIELDS) {
    if (request[field] === undefined || provider.capabilities[capability]) continue;
    throw new SubagentError("UNSUPPORTED_CAPABILITY", `provider '${provider.name}' does not support ${capability}`);
  }
}

function checkDepth({ maxDepth, parent }: SubagentRequest): void {
  if (maxDepth === undefined) return;
  if (!Number.isSafeInteger(maxDepth) || maxDepth < 0 || Object.is(maxDepth, -0)) {
    throw new TypeError(`maxDepth must be a non-negative integer, got ${String(maxDepth)}`);
  }
  const depth = parent.depth + 1;
  if (depth > maxDepth) {
    throw new SubagentError(
      "DEPTH_EXCEEDED",
      `a child of '${parent.name}' would be at depth ${depth}, past ${maxDepth}`,
    );
  }
}

/** The root only: the keyword subset is the business of the provider that first enforces schemas. */
function checkSchema(schema: unknown): void {
  if (schema === undefined) return;
  const isObjectRoot =
    schema !== null && typeof schema === "object" && (schema as { type?: unknown }).type === "object";
  if (!isObjectRoot) throw new SubagentError("UNSUPPORTED_SCHEMA", '(root): must be a JSON Schema of type "object"');
}
