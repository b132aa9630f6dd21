/** Webhooks of a real Deputy to a real receiver: signed, redirected, and delivered although the server was killed. */
import { createHmac } from "node:crypto";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { DeputyServer, eventually } from "../support/deputy-server.ts";

const SECRET = "a secret of the operator's";
/** An object's alarm, on a machine that is busy with other tests. */
const ALARM_TIMEOUT_MS = 60_000;

interface Delivery {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const deliveries: Delivery[] = [];
let isBroken = false;
/** Bytes of the answer without an end that the receiver got rid of before Deputy hung up. */
let flooded: number | undefined;
/** Where the receiver gives up: a Deputy that reads on is told apart from one that hangs up, and the test ends. */
const FLOOD_BYTES_MAX = 256 * 1_024 * 1_024;
let receiver: Server;
let deputy: DeputyServer;

const portOf = () => (receiver.address() as AddressInfo).port;
const at = (path: string) => `http://127.0.0.1:${portOf()}${path}`;
const to = (path: string) => deliveries.filter((one) => one.path === path);

beforeAll(async () => {
  const onRequest = async (request: IncomingMessage, response: ServerResponse) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const path = request.url ?? "";
    deliveries.push({ path, headers: request.headers, body });
    if (path === "/silent") return undefined;
    if (path === "/flood") return flood(response);
    const [, status] = /^\/status\/(\d+)$/.exec(path) ?? [];
    if (status !== undefined) return response.writeHead(Number(status)).end("no");
    if (path === "/loop") return response.writeHead(307, { location: "/loop" }).end();
    if (path === "/moved") return response.writeHead(308, { location: "/new" }).end();
    if (path === "/trap") return response.writeHead(307, { location: "http://169.254.169.254/latest" }).end();
    return response.writeHead(isBroken ? 503 : 200).end();
  };
  receiver = createServer((request, response) => void onRequest(request, response));
  await new Promise<void>((ready) => void receiver.listen(0, "127.0.0.1", ready));
  const webhooks = { allowed_hosts: [`127.0.0.1:${portOf()}`], retry_base_seconds: 1, timeout_seconds: 5 };
  deputy = new DeputyServer({ env: { WEBHOOK_SECRET: SECRET, DEPUTY_OVERRIDES: JSON.stringify({ webhooks }) } });
  await deputy.start();
}, 180_000);

afterAll(async () => {
  await deputy.close();
  receiver.closeAllConnections();
  await new Promise((closed) => void receiver.close(closed));
});

async function flood(response: ServerResponse): Promise<void> {
  let sent = 0;
  const chunk = Buffer.alloc(1_024 * 1_024);
  const closed = new Promise<"closed">((left) => void response.once("close", () => left("closed")));
  response.writeHead(200);
  while (sent < FLOOD_BYTES_MAX && !response.destroyed) {
    const taken = new Promise<"taken">((flushed) => void response.write(chunk, () => flushed("taken")));
    if ((await Promise.race([taken, closed])) === "closed") break;
    sent += chunk.byteLength;
  }
  flooded = sent;
  response.destroy();
}

async function run(threadId: string, webhook: string): Promise<string> {
  const body = {
    assistant_id: "lead_agent",
    input: { messages: [{ role: "user", content: "@ say done" }] },
    if_not_exists: "create",
    webhook,
  };
  return (await deputy.json<{ run_id: string }>("POST", `/threads/${threadId}/runs`, body)).run_id;
}

const toldOf = (threadId: string, runId: string) =>
  deputy.json<{ event_type: string; content: object }[]>(
    "GET",
    `/threads/${threadId}/runs/${runId}/events?event_types=webhook.delivered,webhook.failed`,
  );

it("a run's end reaches the receiver, signed so that it can tell", async () => {
  const runId = await run("signed", at("/hook"));
  const [one] = await eventually(
    () => to("/hook"),
    (seen) => seen.length > 0,
    ALARM_TIMEOUT_MS,
  );
  expect(JSON.parse(one!.body)).toMatchObject({ run_id: runId, thread_id: "signed", status: "success" });
  expect(one!.headers["deputy-delivery"]).toBe(runId);
  const [, seconds, signature] = /^t=(\d+),v1=([0-9a-f]+)$/.exec(String(one!.headers["deputy-signature"]))!;
  expect(signature).toBe(createHmac("sha256", SECRET).update(`${seconds}.${one!.body}`).digest("hex"));
  const told = await eventually(
    () => toldOf("signed", runId),
    (seen) => seen.length > 0,
    ALARM_TIMEOUT_MS,
  );
  expect(told).toMatchObject([{ event_type: "webhook.delivered", content: { attempt: 1, status: 200 } }]);
});

it("a redirect that keeps the method is followed, one into a refused address is not", async () => {
  await run("moved", at("/moved"));
  await eventually(
    () => to("/new"),
    (seen) => seen.length > 0,
    ALARM_TIMEOUT_MS,
  );
  expect(to("/new")[0]!.body).toBe(to("/moved")[0]!.body);
  const trapped = await run("trapped", at("/trap"));
  const told = await eventually(
    () => toldOf("trapped", trapped),
    (seen) => seen.length > 0,
    ALARM_TIMEOUT_MS,
  );
  const content = { attempt: 1, reason: "redirect_refused", next_attempt_at: null };
  expect(told).toMatchObject([{ event_type: "webhook.failed", content }]);
});

it("a redirect loop ends after three, and counts as one attempt that failed", async () => {
  const looped = await run("looped", at("/loop"));
  const [told] = await eventually(
    () => toldOf("looped", looped),
    (seen) => seen.length > 0,
    ALARM_TIMEOUT_MS,
  );
  expect(told).toMatchObject({ event_type: "webhook.failed", content: { attempt: 1, reason: "too_many_redirects" } });
  const first = to("/loop")[0]!.headers["deputy-signature"];
  const ofFirst = to("/loop").filter(({ headers }) => headers["deputy-signature"] === first);
  expect(ofFirst).toHaveLength(4);
});

it("a receiver that takes the request and says nothing costs its timeout, and holds up neither the run nor the thread", async () => {
  const silent = await run("silent", at("/silent"));
  await eventually(
    () => to("/silent"),
    (seen) => seen.length > 0,
    ALARM_TIMEOUT_MS,
  );
  const next = await run("silent", at("/hook"));
  const values = await deputy.json<{ messages: object[] }>("GET", `/threads/silent/runs/${next}/join`);
  expect(values.messages).toHaveLength(4);
  const [told] = await eventually(
    () => toldOf("silent", silent),
    (seen) => seen.length > 0,
    ALARM_TIMEOUT_MS,
  );
  expect(told).toMatchObject({ event_type: "webhook.failed", content: { attempt: 1, reason: "timeout" } });
});

it("an answer without an end is hung up on: its status is all that counts", async () => {
  const flooding = await run("flooded", at("/flood"));
  const told = await eventually(
    () => toldOf("flooded", flooding),
    (seen) => seen.length > 0,
    ALARM_TIMEOUT_MS,
  );
  expect(told).toMatchObject([{ event_type: "webhook.delivered", content: { attempt: 1, status: 200 } }]);
  const sent = await eventually(
    () => flooded,
    (bytes) => bytes !== undefined,
    ALARM_TIMEOUT_MS,
  );
  // What the sockets on the way hold, and no more.
  expect(sent).toBeLessThan(FLOOD_BYTES_MAX / 4);
});

it.each([400, 404, 429, 500, 503])("a %i is tried again, as the same delivery", async (status) => {
  const runId = await run(`told-${status}`, at(`/status/${status}`));
  const [first] = await eventually(
    () => toldOf(`told-${status}`, runId),
    (seen) => seen.length > 0,
    ALARM_TIMEOUT_MS,
  );
  expect(first).toMatchObject({
    event_type: "webhook.failed",
    content: { attempt: 1, reason: `status_${status}`, next_attempt_at: expect.any(String) },
  });
  const seen = await eventually(
    () => to(`/status/${status}`),
    (all) => all.length > 1,
    ALARM_TIMEOUT_MS,
  );
  expect(new Set(seen.map(({ headers }) => headers["deputy-delivery"]))).toEqual(new Set([runId]));
});

it("a 410 is the receiver's word: nothing is sent there again", async () => {
  const runId = await run("told-410", at("/status/410"));
  const told = await eventually(
    () => toldOf("told-410", runId),
    (seen) => seen.length > 0,
    ALARM_TIMEOUT_MS,
  );
  const content = { attempt: 1, reason: "status_410", next_attempt_at: null };
  expect(told).toMatchObject([{ event_type: "webhook.failed", content }]);
});

it("SIGKILL while the receiver is down: the alarm of the next process delivers, and nobody asked it to", async () => {
  isBroken = true;
  const runId = await run("killed", at("/late"));
  await eventually(
    () => to("/late"),
    (seen) => seen.length > 0,
    ALARM_TIMEOUT_MS,
  );
  await deputy.kill();
  const before = to("/late").length;
  isBroken = false;
  await deputy.start();
  await eventually(
    () => to("/late"),
    (seen) => seen.length > before,
    ALARM_TIMEOUT_MS,
  );
  const ids = new Set(to("/late").map(({ headers }) => headers["deputy-delivery"]));
  expect([...ids]).toEqual([runId]);
  const told = await eventually(
    () => toldOf("killed", runId),
    (seen) => seen.some(({ event_type: type }) => type === "webhook.delivered"),
    ALARM_TIMEOUT_MS,
  );
  expect(told.at(-1)).toMatchObject({ event_type: "webhook.delivered" });
}, 240_000);
