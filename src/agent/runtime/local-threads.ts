/**
 * What a thread object holds for its thread, held in this process instead: workspace, admission, journal.
 * Owns which thread has which; the threads used last are kept. A run without a thread id is a thread of its own.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { DeputyConfig } from "../../config.ts";
import type { AgentServices } from "../graph/agent-services.ts";
import { threadIdOf } from "../graph/thread-id.ts";
import type { AdmissionController } from "../subagents/admission-controller.ts";
import { memoryJournal, type DelegationJournal } from "../subagents/delegation-journal.ts";
import { memoryAdmission } from "../subagents/memory-admission.ts";
import { memoryServices } from "./memory-services.ts";
import { RecentMap } from "./recent-map.ts";

/** A thread's files may take 4 MiB; a forgotten thread starts with an empty workspace. */
export const LOCAL_THREADS_MAX = 32;

export interface LocalThread {
  readonly services: AgentServices;
  readonly admission: AdmissionController;
  readonly journal: DelegationJournal;
}

export class LocalThreads {
  readonly #threads = new RecentMap<LocalThread>(LOCAL_THREADS_MAX);
  readonly #deputy: DeputyConfig;
  readonly #newId: () => string;

  constructor(deputy: DeputyConfig, newId: () => string) {
    this.#deputy = deputy;
    this.#newId = newId;
  }

  of(config: RunnableConfig): LocalThread {
    const threadId = threadIdOf(config);
    return threadId !== undefined ? this.#threads.take(threadId, () => this.#create()) : this.#create();
  }

  #create(): LocalThread {
    const newId = this.#newId;
    const { subagent_runtime: runtime, subagent_batches: batches } = this.#deputy;
    return {
      services: memoryServices(newId),
      admission: memoryAdmission({ runtime, leaseSeconds: batches.lease_seconds, newId }),
      journal: memoryJournal(),
    };
  }
}
