/**
 * The registry of providers and the one way to start a child on any of them (subagent-seam 1.1, 1.3, 1.8).
 * Owns the check order and lifecycle events. Invariants: an unsupported option is refused before anything exists; start
 * precedes end; a listener that throws hides nothing from the next one and changes nothing about the run.
 */
import { checkRequest } from "./check-request.ts";
import { describeThrown } from "./diagnostic.ts";
import type {
  SubagentProvider,
  SubagentRequest,
  SubagentResult,
  SubagentRun,
  SubagentRunStopReason,
  TextBlock,
} from "./provider.ts";
import { SubagentError } from "./subagent-error.ts";

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

/** Observes only. A returned promise is adopted: its rejection is reported. */
export type SubagentListener = (event: SubagentLifecycleEvent) => unknown;

export interface SubagentServicePorts {
  readonly newId: () => string;
  /** Told what a listener threw, as text: a thrown value may refuse to be shown. */
  readonly reportFault: (what: string, error: string) => void;
}

interface Registration {
  readonly provider: SubagentProvider;
  readonly name: string;
}

export class SubagentService {
  readonly #ports: SubagentServicePorts;
  /** By the provider's name. An object for each registration: a provider may be registered again. */
  readonly #registrations = new Map<string, Registration>();
  readonly #listeners = new Set<SubagentListener>();

  constructor(ports: SubagentServicePorts) {
    this.#ports = ports;
  }

  /** Gives the disposer. A listener that throws on `provider-added` undoes the registration: the registrant must know. */
  register(provider: SubagentProvider): () => void {
    const registration = { provider, name: provider.name };
    if (this.#registrations.has(provider.name)) {
      throw new SubagentError("DUPLICATE_PROVIDER", `a provider '${provider.name}' is registered already`);
    }
    this.#registrations.set(provider.name, registration);
    const told: SubagentListener[] = [];
    try {
      const audience = [...this.#listeners];
      for (const listener of audience) {
        told.push(listener);
        this.#tell(listener, { type: "subagent/provider-added", provider });
      }
    } catch (error) {
      this.#unregister(registration, told);
      throw error;
    }
    return () => this.#unregister(registration);
  }

  find(name: string): SubagentProvider | undefined {
    return this.#registrations.get(name)?.provider;
  }

  /** Names in the order of registration. */
  list(): readonly string[] {
    return [...this.#registrations.keys()];
  }

  listen(listener: SubagentListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Rejects with `SubagentError`, `TypeError` or what the provider threw; then no run and no event exist. */
  async start(providerName: string, request: SubagentRequest): Promise<SubagentRun> {
    const provider = this.find(providerName);
    if (provider === undefined) throw new SubagentError("NO_PROVIDER", `there is no provider '${providerName}'`);
    checkRequest(provider, request);
    request.signal.throwIfAborted();
    const run = await provider.start({ ...request, onResume: (next) => this.#observe(provider.name, next) });
    try {
      this.#observe(provider.name, run);
    } catch (error) {
      // Its caller gets the fault instead of the run, and could not dispose it.
      const [disposal] = await Promise.allSettled([run.dispose()]);
      throw disposal.status === "fulfilled"
        ? error
        : new AggregateError([error, disposal.reason], "start and disposal failed");
    }
    return run;
  }

  #unregister(registration: Registration, listeners: Iterable<SubagentListener> = this.#listeners): void {
    const { name } = registration;
    if (this.#registrations.get(name) !== registration) return;
    this.#registrations.delete(name);
    this.#emit({ type: "subagent/provider-removed", name }, listeners);
  }

  /**
   * The reaction is attached before `start` is told, and cannot run before it; and before the caller has the run, so that
   * the end is told before anyone can act on the result.
   */
  #observe(provider: string, run: SubagentRun): void {
    const pair = { runId: this.#ports.newId(), provider, id: run.id };
    const end = (result?: SubagentResult): void => this.#emit(toEndEvent(pair, result));
    run.result.then(end, () => end());
    this.#emit({ type: "subagent/start", ...pair });
  }

  /** Each listener apart: a guard around them all would let the first throw silence the rest. */
  #emit(event: SubagentLifecycleEvent, listeners: Iterable<SubagentListener> = this.#listeners): void {
    // Fixed before the first is called: one that listens anew does not prolong the round.
    const audience = [...listeners];
    for (const listener of audience) {
      try {
        this.#tell(listener, event);
      } catch (error) {
        this.#report(event, error);
      }
    }
  }

  /** Throws what the listener throws; what it does later is contained. */
  #tell(listener: SubagentListener, event: SubagentLifecycleEvent): void {
    Promise.resolve(listener(event)).catch((error: unknown) => this.#report(event, error));
  }

  /** The sink is contained as a listener is: one that throws must not hide an event. */
  #report(event: SubagentLifecycleEvent, error: unknown): void {
    try {
      this.#ports.reportFault(`a listener of ${event.type} failed`, describeThrown(error));
    } catch {
      // There is nobody else to tell.
    }
  }
}

/** A result that rejects has no reason of its own. */
function toEndEvent(pair: Omit<SubagentStartEvent, "type">, result: SubagentResult | undefined): SubagentEndEvent {
  const { output = [], stopReason = "error" } = result ?? {};
  const said = output.length > 0 ? { lastAssistantMessage: output } : {};
  return { type: "subagent/end", ...pair, stopReason, ...said };
}
