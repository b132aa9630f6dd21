/** The server that a Worker under `wrangler dev` asks at every failpoint (`FAILPOINT_URL`). Held requests get no answer. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { FailpointHolds } from "./failpoint-holds.ts";

export interface FailpointServer {
  readonly url: string;
  readonly holds: FailpointHolds;
  /** Lets everything pass: what is held now as well. */
  release(): void;
  /** Resolves with the release. */
  readonly released: Promise<void>;
  close(): Promise<void>;
}

export async function startFailpointServer(): Promise<FailpointServer> {
  const holds = new FailpointHolds();
  const held = new Set<ServerResponse>();
  const released = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => (text += part));
    request.on("end", () => {
      const { point, thread_id, detail = "" } = JSON.parse(text) as Record<string, string>;
      if (holds.reach({ point: point!, threadId: thread_id!, detail })) held.add(response);
      else response.end();
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    holds,
    released: released.promise,
    release() {
      holds.release();
      released.resolve();
      for (const response of held) response.end();
      held.clear();
    },
    async close() {
      const closed = new Promise<void>((end) => server.close(() => end()));
      server.closeAllConnections();
      await closed;
    },
  };
}
