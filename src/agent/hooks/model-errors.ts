/**
 * Retries a model turn whose attempt failed (delegation-behaviour 3.5; classification and waits in `models/attempts.ts`).
 * Sits inside the hooks that shape the request, so each attempt sends the same one. After the last attempt the
 * `ModelFailure` goes on to the caller.
 */
import { type AttemptOptions, withAttempts } from "../models/attempts.ts";
import type { AgentHook } from "./hook.ts";

export function modelErrors(options: AttemptOptions): AgentHook {
  return {
    name: "model_errors",
    wrapModelCall: (request, next, context) => withAttempts(() => next(request), context.config.signal, options),
  };
}
