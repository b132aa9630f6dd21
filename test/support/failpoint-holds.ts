/** Which thread is held at which failpoint, and what was reached: the test's side of `Failpoint`, without any I/O. */
import type { FailpointName } from "../../src/domain/shared/failpoint.ts";

/** `model_headers` is the model server's own: a request arrived, no header of its answer was sent. */
export type HoldPoint = FailpointName | "model_headers";

export interface Hold {
  readonly threadId: string;
  readonly point: HoldPoint;
  /** Holds only what has this in its detail. */
  readonly detail?: string;
  /** So many pass first. */
  readonly skip?: number;
}

export interface Hit {
  readonly threadId: string;
  readonly point: string;
  readonly detail: string;
}

export class FailpointHolds {
  readonly #holds: { readonly rule: Hold; passed: number; held: number }[] = [];
  readonly #hits: Hit[] = [];
  readonly #released = new Set<string>();
  #isReleased = false;

  hold(rule: Hold): void {
    this.#holds.push({ rule, passed: 0, held: 0 });
  }

  /** Whether whoever came has to wait for `release`. */
  reach(hit: Hit): boolean {
    this.#hits.push(hit);
    const isHeld = this.#holds.map((hold) => meets(hold.rule, hit) && take(hold)).some(Boolean);
    return isHeld && !this.isReleased(hit.threadId);
  }

  /** Holds of the thread that held nothing yet. */
  waiting(threadId: string): Hold[] {
    return this.#holds.filter(({ rule, held }) => rule.threadId === threadId && held === 0).map(({ rule }) => rule);
  }

  /** What the thread reached so far, in order. */
  reached(threadId: string): string[] {
    return this.#hits.filter((hit) => hit.threadId === threadId).map(({ point, detail }) => `${point} ${detail}`);
  }

  count(threadId: string, point: HoldPoint, detail = ""): number {
    return this.#hits.filter((hit) => hit.threadId === threadId && hit.point === point && hit.detail.includes(detail))
      .length;
  }

  isReleased(threadId: string): boolean {
    return this.#isReleased || this.#released.has(threadId);
  }

  /** From here on everything passes, and is counted; everything of one thread, when one is named. */
  release(threadId?: string): void {
    if (threadId === undefined) this.#isReleased = true;
    else this.#released.add(threadId);
  }
}

function meets({ threadId, point, detail = "" }: Hold, hit: Hit): boolean {
  return hit.threadId === threadId && hit.point === point && hit.detail.includes(detail);
}

function take(hold: { readonly rule: Hold; passed: number; held: number }): boolean {
  if (hold.passed < (hold.rule.skip ?? 0)) {
    hold.passed += 1;
    return false;
  }
  hold.held += 1;
  return true;
}
