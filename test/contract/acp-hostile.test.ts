import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { openNodeWebSocket } from "../../src/agent/subagents/node-web-socket.ts";
import type { SubagentRun } from "../../src/agent/subagents/provider.ts";
import { textOf } from "../../src/agent/subagents/provider.ts";
import { ACP_FRAME_VALUES_MAX, ACP_REPLIED_CHARS_MAX } from "../../src/agent/subagents/providers/acp-limits.ts";
import { acpProvider } from "../../src/agent/subagents/providers/acp.ts";
import { systemTimers } from "../../src/agent/subagents/timers.ts";
import { acpRequest } from "../support/acp-child.ts";
import { eventually } from "../support/eventually.ts";
import { answer, ASKS_PERMISSION, HostileAgent, type Misbehaviour, says, update } from "../support/hostile-agent.ts";

let agent: HostileAgent;
const runs: SubagentRun[] = [];

beforeAll(async () => {
  agent = await HostileAgent.start();
});
afterAll(() => agent.stop());
afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.dispose()));
});

const provider = acpProvider({ openWebSocket: openNodeWebSocket, timers: systemTimers });

async function start(misbehave: Misbehaviour): Promise<SubagentRun> {
  agent.misbehave = misbehave;
  const run = await provider.start(acpRequest({ url: agent.url, permission: "allow" }, "work"));
  runs.push(run);
  return run;
}

/** The agent answers the prompt by these frames; `END` ends the turn. */
const END = {};
const byFrames =
  (...frames: readonly (object | string)[]): Misbehaviour =>
  (message, { send, socket }) => {
    if (message.method !== "session/prompt") return false;
    for (const frame of frames) {
      if (typeof frame === "string") socket.send(frame);
      else send(frame === END ? answer(message, { stopReason: "end_turn" }) : frame);
    }
    return true;
  };

const permissionOf = async (): Promise<unknown> => {
  const replies = await eventually(
    () => agent.peers.at(-1)!.received.filter(({ id, method }) => id === 7 && method === undefined),
    (found) => found.length > 0,
  );
  return replies[0]?.result;
};
const CANCELLED = { outcome: { outcome: "cancelled" } };
const list = (item: string, count: number): string => `[${Array.from({ length: count }, () => item).join(",")}]`;

describe("R152 a signal that fires while the session is handed over", () => {
  test("rejects the start or aborts the run, at whatever step of it: a child is never left that nothing stops", async () => {
    agent.misbehave = (message, { send }) => {
      if (message.method === "session/cancel") send({ jsonrpc: "2.0", id: 2, result: { stopReason: "cancelled" } });
      return false;
    };
    const ends: string[] = [];
    for (let steps = 0; steps < 40; steps += 1) {
      const abort = new AbortController();
      const handing = acpProvider({
        timers: systemTimers,
        openWebSocket: (target, events, signal) => {
          const text = (data: string): void => {
            events.text(data);
            if (data.includes("sessionId")) void afterMicrotasks(steps, () => abort.abort(new Error("enough")));
          };
          return openNodeWebSocket(
            target,
            { text, binary: () => events.binary(), closed: () => events.closed() },
            signal,
          );
        },
      });
      const request = acpRequest({ url: agent.url }, "work", { signal: abort.signal });
      const run = await handing.start(request).catch((error: Error) => error);
      if (run instanceof Error) ends.push(run.message);
      else {
        runs.push(run);
        const never = new Promise<"never">((resolve) => void setTimeout(() => resolve("never"), 1_000));
        const end = await Promise.race([run.result, never]);
        ends.push(end === "never" ? end : end.stopReason);
      }
    }
    expect(new Set(ends)).toEqual(new Set(["enough", "aborted"]));
  });
});

async function afterMicrotasks(count: number, act: () => void): Promise<void> {
  for (let step = 0; step < count; step += 1) await Promise.resolve();
  act();
}

describe("R158 an agent that keeps no rule", () => {
  test("is permitted nothing once it was told to stop", async () => {
    const run = await start((message, { send }) => {
      if (message.method === "session/cancel") send(ASKS_PERMISSION);
      return false;
    });
    run.cancel();
    expect(await permissionOf()).toEqual(CANCELLED);
  });

  test("is permitted nothing once it has answered, in the same go included", async () => {
    await start(byFrames(END, ASKS_PERMISSION));
    expect(await permissionOf()).toEqual(CANCELLED);
  });

  test("is permitted nothing before it was asked for anything", async () => {
    await start((message, { send }) => {
      if (message.method !== "session/new") return false;
      send(answer(message, { sessionId: "s" }));
      send(ASKS_PERMISSION);
      return true;
    });
    expect(await permissionOf()).toEqual(CANCELLED);
  });

  test("says nothing more after its answer, and answers once", async () => {
    const run = await start(byFrames(says("42"), END, says(" and more"), { jsonrpc: "2.0", id: 2, result: {} }, END));
    const result = await run.result;
    expect([result.stopReason, textOf(result)]).toEqual(["completed", "42"]);
  });

  test.each([
    ["of numbers where options should be", (items: string) => `"options":${items}`],
    ["of lists in lists", (items: string) => `"deep":${"[".repeat(20_000)}${items}${"]".repeat(20_000)}`],
  ])("a message %s ends the run before anything has looked at the values", async (_what, params) => {
    const frame = `{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{${params(list("1", 1_000_000))}}}`;
    const before = performance.now();
    const run = await start(byFrames(says("partial"), frame, END));
    const result = await run.result;
    expect([result.stopReason, textOf(result)]).toEqual(["error", "partial"]);
    expect(result.diagnostic).toBe("the agent sent a message of too many values");
    expect(agent.peers.at(-1)!.received.filter(({ id }) => id === 7)).toEqual([]);
    expect(performance.now() - before).toBeLessThan(5_000);
  });

  test("a message of many values below the bound, and one of many commas in a text, are taken", async () => {
    const rawInput = JSON.parse(list("1", ACP_FRAME_VALUES_MAX - 100)) as unknown;
    const call = update({ sessionUpdate: "tool_call", toolCallId: "a", title: "t", rawInput });
    const run = await start(byFrames(call, says(',[{\\"'.repeat(100_000)), END));
    const result = await run.result;
    expect([result.stopReason, textOf(result).length]).toEqual(["completed", 500_000]);
  });

  test("P8 who asks without end, and reads no answer, is not answered without end", async () => {
    const asks = { jsonrpc: "2.0", id: 7, method: `x/${"m".repeat(ACP_REPLIED_CHARS_MAX / 10)}` };
    const run = await start((message, peer) => {
      if (message.method !== "session/prompt") return false;
      byFrames(...Array.from({ length: 12 }, () => asks))(message, peer);
      return true;
    });
    expect(await run.result).toMatchObject({ stopReason: "error", diagnostic: "the agent asks for too much" });
    const replied = agent.peers.at(-1)!.received.filter(({ id }) => id === 7);
    expect(JSON.stringify(replied).length).toBeLessThanOrEqual(ACP_REPLIED_CHARS_MAX);
  });
});
