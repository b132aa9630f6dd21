/** Deliveries over real HTTP, to a receiver of the test's own on loopback. */
import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { webhookSender } from "../../../src/platform/webhook/webhook-sender.ts";

const SECRET = "the operator's secret";
const NOW = 1_790_000_000_123;

interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const received: Received[] = [];
/** What each path answers; a path without one is never answered. */
const answers: Record<string, (response: ServerResponse) => void> = {
  "/ok": (response) => response.writeHead(204).end(),
  "/broken": (response) => response.writeHead(500).end("x".repeat(1_000)),
  "/gone": (response) => response.writeHead(410).end(),
  "/cut": (response) => response.destroy(),
  "/moved": (response) => response.writeHead(308, { location: "/ok" }).end(),
  "/as-get": (response) => response.writeHead(302, { location: "/ok" }).end(),
  "/loop": (response) => response.writeHead(307, { location: "/loop" }).end(),
  "/nowhere": (response) => response.writeHead(307).end(),
  "/to-metadata": (response) => response.writeHead(307, { location: "http://169.254.169.254/latest/" }).end(),
  "/to-loopback": (response) => response.writeHead(308, { location: `https://127.0.0.1:${otherPort()}/ok` }).end(),
  "/to-plain-http": (response) => response.writeHead(307, { location: "http://hooks.example.com/" }).end(),
};

let server: Server;
let other: Server;
const asked: string[] = [];
const portOf = (of: Server) => (of.address() as AddressInfo).port;
const otherPort = () => portOf(other);

async function listening(onRequest: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<Server> {
  const made = createServer((request, response) => void onRequest(request, response));
  await new Promise<void>((ready) => void made.listen(0, "127.0.0.1", ready));
  return made;
}

beforeAll(async () => {
  other = await listening((request, response) => {
    asked.push(request.url ?? "");
    response.end();
  });
  server = await listening(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const { method = "", url: path = "", headers } = request;
    received.push({ method, path, headers: headers as Record<string, string>, body });
    answers[path]?.(response);
  });
});

afterAll(async () => {
  for (const each of [server, other]) {
    each.closeAllConnections();
    await new Promise((closed) => void each.close(closed));
  }
});

function sender(timeoutMs = 20_000, secret: string | undefined = SECRET) {
  const allowedHosts = [`127.0.0.1:${portOf(server)}`];
  return webhookSender({ secret, allowedHosts, timeoutMs, fetchIn: () => fetch });
}

const to = (path: string, body = "{}") => ({
  url: `http://127.0.0.1:${portOf(server)}${path}`,
  deliveryId: `delivery of ${path}`,
  body,
  now: NOW,
  scope: "t",
});

describe("an attempt", () => {
  it("is signed over its time and its body: a receiver that computes the same knows who sent what, and when", async () => {
    const body = JSON.stringify({ run_id: "r", values: { text: "größer" } });
    expect(await sender().send(to("/ok", body))).toEqual({ kind: "delivered", status: 204 });
    const last = received.at(-1)!;
    expect(last).toMatchObject({ method: "POST", path: "/ok", body });
    expect(last.headers).toMatchObject({
      "content-type": "application/json",
      "deputy-delivery": "delivery of /ok",
    });
    const [, seconds, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(last.headers["deputy-signature"] ?? "")!;
    expect(seconds).toBe("1790000000");
    expect(signature).toBe(createHmac("sha256", SECRET).update(`${seconds}.${last.body}`).digest("hex"));
    expect(JSON.stringify(last)).not.toContain(SECRET);
  });

  it.each([
    ["/broken", { kind: "failed", reason: "status_500", isFinal: false }],
    ["/gone", { kind: "failed", reason: "status_410", isFinal: true }],
    ["/cut", { kind: "failed", reason: "unreachable", isFinal: false }],
    ["/as-get", { kind: "failed", reason: "status_302", isFinal: false }],
    ["/nowhere", { kind: "failed", reason: "status_307", isFinal: false }],
    ["/loop", { kind: "failed", reason: "too_many_redirects", isFinal: false }],
    ["/moved", { kind: "delivered", status: 204 }],
  ])("at %s comes to %o", async (path, outcome) => {
    expect(await sender().send(to(path))).toEqual(outcome);
  });

  it("follows a redirect with the same method, body and signature, and at most three", async () => {
    const before = received.length;
    await sender().send(to("/moved", '{"run_id":"moved"}'));
    const [first, second] = received.slice(before);
    expect(second).toMatchObject({ method: "POST", path: "/ok", body: first?.body });
    expect(second?.headers["deputy-signature"]).toBe(first?.headers["deputy-signature"]);
    const looped = received.length;
    await sender().send(to("/loop"));
    expect(received.length - looped).toBe(4);
  });

  it.each(["/to-metadata", "/to-loopback", "/to-plain-http"])(
    "that is led by %s to an address that is refused ends there, for good, and nobody is asked",
    async (path) => {
      const refused = { kind: "failed", reason: "redirect_refused", isFinal: true };
      expect(await sender().send(to(path))).toEqual(refused);
      expect(asked).toEqual([]);
    },
  );

  it("that nobody answers ends at its timeout", async () => {
    expect(await sender(50).send(to("/silent"))).toEqual({ kind: "failed", reason: "timeout", isFinal: false });
  });

  it("is checked again when it is made: an allowance that was taken back counts", async () => {
    const before = received.length;
    const without = webhookSender({ secret: SECRET, allowedHosts: [], timeoutMs: 20_000, fetchIn: () => fetch });
    expect(await without.send(to("/ok"))).toEqual({ kind: "failed", reason: "refused", isFinal: true });
    expect(received.length).toBe(before);
  });

  it("without a secret is neither accepted nor made", async () => {
    for (const secret of [undefined, ""]) {
      const unsigned = webhookSender({ secret, allowedHosts: [], timeoutMs: 1_000, fetchIn: () => fetch });
      expect(unsigned.check("https://hooks.example.com/")).toMatchObject({
        ok: false,
        error: { code: "unsupported_option", details: { field: "webhook" } },
      });
      expect(await unsigned.send(to("/ok"))).toMatchObject({ kind: "failed", reason: "no_secret" });
    }
  });
});
