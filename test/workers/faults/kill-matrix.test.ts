/**
 * The kill matrix, abort half: every cell parked over one workerd, all objects aborted once, then all are checked.
 * Consumers of batch items are other invocations: they go on, and their results must still be taken.
 */
import { abortAllDurableObjects, env } from "cloudflare:test";
import { afterAll, beforeAll, describe, it } from "vitest";
import { holdFailpoints } from "../../../src/platform/failpoints.ts";
import { FailpointHolds } from "../../support/failpoint-holds.ts";
import { send } from "../../support/http.ts";
import { killCells } from "../../support/kill-cells.ts";
import { type KillHost, parkAll, type ParkedCell } from "../../support/kill-matrix.ts";

/** How often a held one asks whether it may go on; an aborted object's asks no more. */
const ASK_AGAIN_MS = 20;
const PARKING_MS = 120_000;

const holds = new FailpointHolds();
const cells = killCells("abort");
let parked: ParkedCell[] = [];

const host: KillHost = {
  kill: "abort",
  holds,
  release: (threadId) => holds.release(threadId),
  fetch: (method, path, { body, headers = {} } = {}) =>
    send(method, path, body, { "x-api-key": "key-alice", "content-type": "application/json", ...headers }),
  d1: async <T>(sql: string) => (await env.DB.prepare(sql).all<T>()).results,
};

async function untilReleased(threadId: string): Promise<void> {
  while (!holds.isReleased(threadId)) await new Promise((next) => void setTimeout(next, ASK_AGAIN_MS));
}

beforeAll(async () => {
  holdFailpoints((point, { threadId, detail = "" }) =>
    holds.reach({ point, threadId, detail }) ? untilReleased(threadId) : undefined,
  );
  parked = await parkAll(host, cells);
  await abortAllDurableObjects();
  for (const one of parked) await one.checkHeld();
  holds.release();
}, PARKING_MS);

afterAll(() => {
  holds.release();
  holdFailpoints(undefined);
});

describe("every object aborted, and woken by its client", () => {
  it.each(cells.map((cell, place) => [cell.point, cell.subject, place] as const))(
    "P1 P2 %s, %s: one end, nothing finished redone, no gap, streams go on",
    async (_point, _subject, place) => {
      await parked[place]!.check();
    },
    PARKING_MS,
  );
});
