/** The script of docs/subagents.md as it stands there, in front of the test agent's standard streams. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openNodeWebSocket } from "../../src/agent/subagents/node-web-socket.ts";
import { textOf } from "../../src/agent/subagents/provider.ts";
import { acpProvider } from "../../src/agent/subagents/providers/acp.ts";
import { systemTimers } from "../../src/agent/subagents/timers.ts";
import { acpRequest } from "../support/acp-child.ts";

const SCRIPT = /```js file=acp-bridge\.mjs\n([\s\S]*?)\n```/;

const folder = mkdtempSync(join(tmpdir(), "deputy-acp-bridge-"));
let bridge: ChildProcess;
let url: string;

beforeAll(async () => {
  const [, script] = SCRIPT.exec(readFileSync("docs/subagents.md", "utf8")) ?? [];
  if (script === undefined) throw new Error("docs/subagents.md has no script");
  writeFileSync(join(folder, "acp-bridge.mjs"), script);
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
  const agent = [process.execPath, resolve("test/support/acp-agent.ts"), "--stdio"];
  const started = spawn(process.execPath, [join(folder, "acp-bridge.mjs"), "0", ...agent], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ACP_BRIDGE_TOKEN: "of-the-bridge" },
  });
  bridge = started;
  const [line] = (await once(createInterface(started.stdout), "line")) as [string];
  url = `ws://127.0.0.1:${(JSON.parse(line) as { port: number }).port}/`;
});
afterAll(() => {
  bridge.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

const provider = acpProvider({ openWebSocket: openNodeWebSocket, timers: systemTimers });
const headers = { authorization: "Bearer of-the-bridge" };

test("an agent on standard streams is a child through the documented script, each run in a process of its own", async () => {
  const runs = await Promise.all(
    [1, 2].map((each) =>
      provider.start(acpRequest({ url, headers }, [{ says: "line\none" }, { says: `end ${each}` }])),
    ),
  );
  const results = await Promise.all(runs.map((run) => run.result));
  expect(results.map((result) => [result.stopReason, textOf(result)])).toEqual([
    ["completed", "end 1"],
    ["completed", "end 2"],
  ]);
  await Promise.all(runs.map((run) => run.dispose()));
});

test("an agent that dies behind the script is a lost connection", async () => {
  const run = await provider.start(acpRequest({ url, headers }, [{ says: "partial" }, { exits: 1 }]));
  expect(await run.result).toMatchObject({ stopReason: "error", output: [{ text: "partial" }] });
  await run.dispose();
});

test("the script lets nobody in without the token", async () => {
  await expect(provider.start(acpRequest({ url }, [{ says: "42" }]))).rejects.toThrow(/refuses the connection/);
});
