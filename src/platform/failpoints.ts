/**
 * Where failpoints come from: a server of the test's own on loopback, or a function in the same isolate. Owns when they
 * are on: only with `TEST_ROUTES=1`, never in a deployed environment. Off, there is no function to call at all.
 */
import type { Failpoint } from "../domain/shared/failpoint.ts";

export interface FailpointEnv {
  readonly TEST_ROUTES?: string;
  /** Answers `POST {point, thread_id, detail}` when the object may go on. */
  readonly FAILPOINT_URL?: string;
  /** Bound in deployed environments alone. */
  readonly AI?: unknown;
}

const LOOPBACK = /^http:\/\/127\.0\.0\.1:\d+(\/|$)/;

let held: Failpoint | undefined;

/** For tests that share the isolate with the Worker; `undefined` lets everything pass again. */
export function holdFailpoints(hold: Failpoint | undefined): void {
  held = hold;
}

/** Throws when failpoints are asked for where they must not be. */
export function failpointsOf({ TEST_ROUTES, FAILPOINT_URL, AI }: FailpointEnv): Failpoint | undefined {
  if (FAILPOINT_URL && TEST_ROUTES !== "1") throw new Error("FAILPOINT_URL is for tests: it needs TEST_ROUTES=1");
  if (TEST_ROUTES !== "1") return undefined;
  if (AI !== undefined) throw new Error("TEST_ROUTES is for tests: a deployed environment must not set it");
  if (!FAILPOINT_URL) return (name, place) => held?.(name, place);
  if (!LOOPBACK.test(FAILPOINT_URL)) throw new Error("FAILPOINT_URL must be a server on 127.0.0.1");
  return remote(FAILPOINT_URL);
}

function remote(url: string): Failpoint {
  return async (point, { threadId, detail }) => {
    const response = await fetch(url, {
      method: "POST",
      body: JSON.stringify({ point, thread_id: threadId, detail }),
    });
    await response.arrayBuffer();
  };
}
