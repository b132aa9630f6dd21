/** Turns results of RPC methods and of the object's `fetch` into answers. */
import { type Result, ok } from "../domain/shared/result.ts";
import { type ApiRefusal, type ErrorCode, STATUS_BY_CODE } from "../protocol/errors.ts";
import { THREAD_ADDRESS_HEADER, type ThreadAddress } from "../protocol/thread-rpc.ts";
import { refuse } from "./errors.ts";
import type { Answer } from "./operation.ts";
import type { ThreadDirectory } from "./ports.ts";

export function json(value: unknown, init: { status?: number; headers?: Record<string, string> } = {}): Answer {
  return ok(Response.json(value, { status: init.status ?? 200, headers: init.headers ?? {} }));
}

export function empty(status: 202 | 204): Answer {
  return ok(new Response(null, { status }));
}

/** A refusal as is, a value through `render`. */
export function answer<T>(result: Result<T, ApiRefusal>, render: (value: T) => Answer): Answer {
  return result.ok ? render(result.value) : result;
}

/**
 * Asks a thread object by `fetch`. A good answer is handed on with its body untouched, so that the object's readers
 * see the client's own pace; a refusal is read (it is small) and gets the edge's form.
 */
export async function fetchThread(
  threads: ThreadDirectory,
  address: ThreadAddress,
  { path, init = {} }: { path: string; init?: RequestInit },
): Promise<Answer> {
  const headers = new Headers(init.headers);
  headers.set(THREAD_ADDRESS_HEADER, JSON.stringify(address));
  const request = new Request(`https://thread${path}`, { ...init, headers });
  const response = await threads.stub(address.owner, address.thread_id).fetch(request);
  return response.ok ? ok(response) : refusalOf(response);
}

async function refusalOf(response: Response): Promise<Answer> {
  const refusal = await response.json<Partial<ApiRefusal>>();
  const { code, message, details } = refusal;
  if (code === undefined || !isErrorCode(code)) throw new Error(`thread object answered ${response.status}`);
  return refuse(code, message ?? code, details);
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(STATUS_BY_CODE, code);
}
