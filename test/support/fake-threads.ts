/**
 * Stands in for thread objects where a test is about the gateway alone: remembers each call and answers what the test
 * says, else `not_found`, as an object of an unknown thread does.
 */
import type { ThreadDirectory } from "../../src/gateway/ports.ts";
import { err } from "../../src/domain/shared/result.ts";
import { type ApiRefusal, STATUS_BY_CODE } from "../../src/protocol/errors.ts";
import type { ThreadRpc } from "../../src/protocol/thread-rpc.ts";

export type ThreadStub = ReturnType<ThreadDirectory["stub"]>;

export interface RecordedCall {
  readonly owner: string;
  readonly threadId: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

const MISSING: ApiRefusal = { code: "not_found", message: "no such thread" };

export class FakeThreads implements ThreadDirectory {
  readonly calls: RecordedCall[] = [];
  readonly #answers: Partial<ThreadStub>;

  constructor(answers: Partial<ThreadStub> = {}) {
    this.#answers = answers;
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
