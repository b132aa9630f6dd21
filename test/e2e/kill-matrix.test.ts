/**
 * The kill matrix, SIGKILL half: every cell parked in one `wrangler dev`, one kill, one restart, then all are checked.
 * Nothing is asked of a thread before D1 says that it ended: the restart has to wake it by itself.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DeputyServer } from "../support/deputy-server.ts";
import { type FailpointServer, startFailpointServer } from "../support/failpoint-server.ts";
import { killCells } from "../support/kill-cells.ts";
import { type KillHost, parkAll, type ParkedCell } from "../support/kill-matrix.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { type WireRequest, wireText } from "../support/model-wire.ts";

let failpoints: FailpointServer;
let models: ModelServer;
let deputy: DeputyServer;
let parked: ParkedCell[];

/** The first line of what the agent was asked: whose request it is, and of which thread. */
function markOf(request: WireRequest): { threadId: string; detail: string } | undefined {
  const asked = request.messages
    .filter((message) => message.role === "user")
    .map(wireText)
    .join("\n");
  const [, detail, threadId] = /^(lead|child|item) of (\S+)$/m.exec(asked) ?? [];
  return detail === undefined || threadId === undefined ? undefined : { threadId, detail };
}

function held(request: WireRequest): Promise<void> | undefined {
  const mark = markOf(request);
  if (mark === undefined || !failpoints.holds.reach({ point: "model_headers", ...mark })) return undefined;
  return failpoints.untilReleased(mark.threadId);
}

const cells = killCells("sigkill");

/** A heartbeat must come through while 29 cells park; recovery of items waits for the end of one lease. */
const LEASE_SECONDS = 30;
const KEEP_ALIVE_SECONDS = 5;
/** Two starts of the server, and every cell's own patience between them. */
const PARKING_MS = 480_000;

beforeAll(async () => {
  failpoints = await startFailpointServer();
  models = await startModelServer({ beforeHeaders: held });
  deputy = new DeputyServer({
    env: {
      OPENAI_API_KEY: "sk-test-of-deputy",
      OPENAI_BASE_URL: models.url,
      OPENAI_MODEL: "served-model",
      TEST_ROUTES: "1",
      FAILPOINT_URL: failpoints.url,
      DEPUTY_OVERRIDES: JSON.stringify({
        subagent_batches: { lease_seconds: LEASE_SECONDS },
        runtime: { keep_alive_seconds: KEEP_ALIVE_SECONDS },
      }),
    },
  });
  await deputy.start();
  const host: KillHost = {
    kill: "sigkill",
    holds: failpoints.holds,
    release: (threadId) => failpoints.release(threadId),
    fetch: (method, path, { body, headers } = {}) =>
      fetch(`${deputy.url}${path}`, {
        method,
        headers: { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    d1: (sql) => deputy.query(sql),
    stalled: (threadId) => models.stalled.filter((request) => markOf(request)?.threadId === threadId).length,
  };
  parked = await parkAll(host, cells);
  await deputy.kill();
  failpoints.release();
  await deputy.start();
}, PARKING_MS);

afterAll(async () => {
  await deputy.close();
  await models.close();
  await failpoints.close();
});

describe("SIGKILL of everything, and a restart", () => {
  it.each(cells.map((cell, place) => [cell.point, cell.subject, place] as const))(
    "P1 P2 %s, %s: one end, nothing finished redone, no gap, streams go on",
    async (_point, _subject, place) => {
      await parked[place]!.check();
    },
  );

  it("no request of any cell was one that a strict provider refuses", () => {
    expect(models.violations).toEqual([]);
  });
});
