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
