/** The server that a Worker under `wrangler dev` asks at every failpoint (`FAILPOINT_URL`). Held requests get no answer. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { FailpointHolds } from "./failpoint-holds.ts";

export interface FailpointServer {
  readonly url: string;
  readonly holds: FailpointHolds;
  /** Lets everything pass, of one thread when one is named: what is held now as well. */
  release(threadId?: string): void;
  /** Resolves with the release. */
  untilReleased(threadId: string): Promise<void>;
  close(): Promise<void>;
}

export async function startFailpointServer(): Promise<FailpointServer> {
  const holds = new FailpointHolds();
  const waiting = new Map<() => void, string>();
  const untilReleased = (threadId: string) => new Promise<void>((goOn) => void waiting.set(goOn, threadId));
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => (text += part));
    request.on("end", () => {
      // A connection that idles is closed by Node at some moment, and whoever asks over it then is not answered.
      response.setHeader("connection", "close");
      const { point, thread_id, detail = "" } = JSON.parse(text) as Record<string, string>;
      if (!holds.reach({ point: point!, threadId: thread_id!, detail })) response.end();
      else void untilReleased(thread_id!).then(() => response.end());
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    holds,
    untilReleased,
    release(threadId) {
      holds.release(threadId);
      for (const [goOn, held] of waiting) {
        if (!holds.isReleased(held)) continue;
        waiting.delete(goOn);
        goOn();
      }
    },
    async close() {
      const closed = new Promise<void>((end) => server.close(() => end()));
      server.closeAllConnections();
      await closed;
    },
  };
}
