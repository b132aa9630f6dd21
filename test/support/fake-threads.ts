/**
 * Stands in for thread objects where a test is about the gateway alone: remembers each call and answers what the test
 * says, else `not_found`, as an object of an unknown thread does (a create is always accepted).
 */
import type { ThreadDirectory } from "../../src/gateway/ports.ts";
import { err, ok } from "../../src/domain/shared/result.ts";
import { type ApiRefusal, STATUS_BY_CODE } from "../../src/protocol/errors.ts";
import type { ThreadRpc } from "../../src/protocol/thread-rpc.ts";
import type { Thread } from "../../src/protocol/threads.ts";

export type ThreadStub = ReturnType<ThreadDirectory["stub"]>;

export interface RecordedCall {
  readonly owner: string;
  readonly threadId: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

const MISSING: ApiRefusal = { code: "not_found", message: "no such thread" };

const CREATED: Omit<Thread, "thread_id"> = {
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
  metadata: {},
  status: "idle",
  values: null,
  interrupts: {},
};

export class FakeThreads implements ThreadDirectory {
  readonly calls: RecordedCall[] = [];
  readonly #answers: Partial<ThreadStub>;

  constructor(answers: Partial<ThreadStub> = {}) {
    this.#answers = { createThread: async (address) => ok({ ...CREATED, thread_id: address.thread_id }), ...answers };
  }

  stub(owner: string, threadId: string): ThreadStub {
    const method =
      (name: string) =>
      (...args: unknown[]): Promise<unknown> => {
        this.calls.push({ owner, threadId, method: name, args });
        const answer = this.#answers[name as keyof ThreadRpc] as ((...args: unknown[]) => Promise<unknown>) | undefined;
        if (answer !== undefined) return answer(...args);
        const missing = Response.json(MISSING, { status: STATUS_BY_CODE[MISSING.code] });
        return Promise.resolve(name === "fetch" ? missing : err(MISSING));
      };
    return new Proxy({}, { get: (_target, name) => method(String(name)) }) as ThreadStub;
  }
}
