import type { BaseMessage } from "@langchain/core/messages";
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ACP_PENDING_FRAMES_MAX, ACP_START_MS } from "../../src/agent/subagents/providers/acp-limits.ts";
import { acpProvider } from "../../src/agent/subagents/providers/acp.ts";
import { AcpLink } from "../../src/agent/subagents/providers/acp-link.ts";
import { openNodeWebSocket } from "../../src/agent/subagents/node-web-socket.ts";
import { type SubagentRun, textOf } from "../../src/agent/subagents/provider.ts";
import { systemTimers } from "../../src/agent/subagents/timers.ts";
import type { AcpEndpoint } from "../../src/domain/delegation/acp-endpoint.ts";
import { AcpAgentProcess } from "../support/acp-agent-process.ts";
import type { AgentStep } from "../support/acp-agent.ts";
import { acpRequest } from "../support/acp-child.ts";
import { plainTool, succeeded } from "../support/agent-fixture.ts";
import { eventually } from "../support/eventually.ts";
import { ManualTimers } from "../support/manual-timers.ts";

let agent: AcpAgentProcess;
const runs: SubagentRun[] = [];

beforeAll(async () => {
  agent = await AcpAgentProcess.start();
});
afterAll(() => agent.stop());
afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.dispose()));
});

const provider = acpProvider({ openWebSocket: openNodeWebSocket, timers: systemTimers });

interface Told {
  readonly told: BaseMessage[];
  readonly run: SubagentRun;
}

async function start(
  plan: readonly AgentStep[],
  endpoint: Partial<AcpEndpoint> & { query?: string } = {},
): Promise<Told> {
  const { query, ...more } = endpoint;
  const told: BaseMessage[] = [];
  const onMessage = (message: BaseMessage): void => void told.push(message);
  const run = await provider.start(acpRequest({ url: agent.url(query), ...more }, plan, { onMessage }));
  runs.push(run);
  return { told, run };
}

async function finish(plan: readonly AgentStep[], endpoint: Partial<AcpEndpoint> = {}) {
  const { run, told } = await start(plan, endpoint);
  const result = await run.result;
  return { ...result, text: textOf(result), told };
}

const eventsSince = async (from: number) => (await agent.logSince(from)).map(({ event }) => event);
const failure = (work: Promise<unknown>) =>
  work.then(
    () => "it started",
    (error: Error) => error.message,
  );

describe("starting", () => {
  test("connects with the headers, advertises no capability, and asks for a session in the directory, without MCP servers", async () => {
    const from = (await agent.log()).length;
    await finish([{ says: "42" }], { headers: { authorization: "Bearer of-the-agent" }, cwd: "/srv/work" });
    const [connect, initialize, session] = (await agent.logSince(from)).map(({ details }) => details);
    expect(connect).toMatchObject({ authorization: "Bearer of-the-agent" });
    expect(initialize).toMatchObject({
      protocolVersion: 1,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    });
    expect(session).toEqual({ cwd: "/srv/work", mcpServers: [] });
  });

  test.each([
    ["refuse", /refuses the connection/, false],
    // The headers are meant for one address.
    ["moved", /refuses the connection/, false],
    ["version=2", /another version of the protocol/, true],
    ["no-session", /no session id/, true],
  ])(
    "R158 an agent that answers %s: the start fails, says why, shows nothing of the endpoint, and leaves no connection",
    async (query, why, connects) => {
      const from = (await agent.log()).length;
      const message = await failure(start([{ says: "42" }], { query, headers: { authorization: "Bearer hush" } }));
      expect(message).toMatch(why);
      expect(message).not.toMatch(/hush|127\.0\.0\.1|ws:/);
      const ended = connects ? ["connect", "initialize", "close"] : [];
      const seen = await eventually(
        () => eventsSince(from),
        (events) => events.includes("close") === connects,
      );
      expect(seen.filter((event) => event !== "session/new")).toEqual(ended);
    },
  );

  test("nobody at the address: the start fails", async () => {
    const work = provider.start(acpRequest({ url: "ws://127.0.0.1:1/" }, [{ says: "42" }]));
    expect(await failure(work)).toMatch(/cannot be reached/);
  });

  test.each(["hang", "slow", "slow-session"])(
    "an agent that is silent at %s: an abort rejects with its reason, and no connection is left",
    async (query) => {
      const from = (await agent.log()).length;
      const abort = new AbortController();
      const work = provider.start(acpRequest({ url: agent.url(query) }, [{ says: "42" }], { signal: abort.signal }));
      const arrived = { hang: 0, slow: 2, "slow-session": 3 }[query] ?? 0;
      await eventually(
        () => eventsSince(from),
        (events) => events.length === arrived,
      );
      abort.abort(new Error("enough"));
      await expect(work).rejects.toThrow("enough");
      if (arrived > 0)
        await eventually(
          () => eventsSince(from),
          (events) => events.includes("close"),
        );
    },
  );

  test("an agent that gives no session in time: the start fails, and the connection is closed", async () => {
    const timers = new ManualTimers();
    const from = (await agent.log()).length;
    const slow = acpProvider({ openWebSocket: openNodeWebSocket, timers });
    const work = failure(slow.start(acpRequest({ url: agent.url("slow") }, [{ says: "42" }])));
    await eventually(
      () => eventsSince(from),
      (events) => events.includes("initialize"),
    );
    timers.advance(ACP_START_MS);
    expect(await work).toMatch(/no session within 30 s/);
    await eventually(
      () => eventsSince(from),
      (events) => events.includes("close"),
    );
  });

  test("R139 a prompt, tools or hooks of ours are refused: the agent has its own", async () => {
    const from = (await agent.log()).length;
    const request = acpRequest({ url: agent.url() }, [{ says: "42" }]);
    const tools = [plainTool("look", () => succeeded("seen"))];
    for (const [brought, named] of [
      [{ tools }, "tools"],
      [{ systemPrompt: "You are" }, "a system prompt"],
      [{ hooks: [{ name: "watch" }] }, "hooks"],
    ] as const) {
      const work = provider.start({ ...request, agent: { ...request.agent, ...brought } });
      await expect(work).rejects.toMatchObject({
        code: "UNSUPPORTED_CAPABILITY",
        message: expect.stringContaining(named),
      });
    }
    expect(await eventsSince(from)).toEqual([]);
  });
});

describe("results", () => {
  test.each([
    ["end_turn", "completed", undefined],
    ["max_tokens", "max-tokens", undefined],
    ["refusal", "refusal", undefined],
    ["cancelled", "aborted", /ended its turn as cancelled/],
    ["max_turn_requests", "error", /limit of model requests/],
    ["hibernated", "error", /unknown reason/],
    ["constructor", "error", /unknown reason/],
  ])("R147 the stop reason %s is %s", async (ends, stopReason, diagnostic) => {
    const end = await finish([{ says: "so far" }, { ends }]);
    expect([end.stopReason, end.text]).toEqual([stopReason, "so far"]);
    if (diagnostic === undefined) expect(end.diagnostic).toBeUndefined();
    else expect(end.diagnostic).toMatch(diagnostic);
  });

  test("messages and tool calls are steps under ids of ours; the last message is the output", async () => {
    const { told, text } = await finish([
      { thinks: "secret thought" },
      { chunks: ["I will ", "look"] },
      { tool: { status: "failed", text: "nothing there" } },
      { chunks: ["first", "second", " half"], messageIds: ["m1", "m2", "m2"] },
      { elsewhere: "for somebody else" },
    ]);
    expect(text).toBe("second half");
    expect(told.map((message) => [message.type, message.text])).toEqual([
      ["ai", "I will look"],
      ["tool", "nothing there"],
      ["ai", "first"],
      ["ai", "second half"],
    ]);
    const [asking, answer] = told as [AIMessage, ToolMessage];
    expect(asking.tool_calls).toMatchObject([
      { name: "read", args: { title: "Look around", input: { where: "here" } } },
    ]);
    expect([answer.tool_call_id, answer.status, answer.name]).toEqual([asking.tool_calls?.[0]?.id, "error", "read"]);
    const ids = told.map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
    expect(JSON.stringify(told.map((message) => message.toDict()))).not.toMatch(/call-\d|secret|somebody/);
  });

  test("runs with the same session id of the agent keep their own ids and texts", async () => {
    const [first, second] = await Promise.all([finish([{ says: "one" }]), finish([{ says: "two" }])]);
    expect([first.text, second.text]).toEqual(["one", "two"]);
  });

  test.each([
    ["reject", ["allow_once"], { outcome: "cancelled" }],
    ["allow", ["reject_once", "allow_always", "allow_once"], { outcome: "selected", optionId: "option-1" }],
    ["allow", ["reject_once", "reject_always"], { outcome: "cancelled" }],
  ] as const)("permission under %s, offered %s", async (permission, offered, answer) => {
    const { text } = await finish([{ asksPermission: offered }], { permission });
    expect(JSON.parse(text)).toEqual(answer);
  });

  test.each(["fs/read_text_file", "fs/write_text_file", "terminal/create", "x/unknown"])(
    "a request of %s is no method of ours",
    async (method) => {
      expect((await finish([{ calls: method }])).text).toBe("refused -32601");
    },
  );

  test("an error the agent answers with is a diagnostic without its data", async () => {
    const end = await finish([{ says: "half" }, { fails: "model is down" }]);
    expect(end.diagnostic).toBe("the agent answered with an error: model is down");
    expect(JSON.stringify(end.diagnostic)).not.toContain("payload");
  });

  test("an answer nobody asked for changes nothing", async () => {
    const end = await finish([{ raw: '{"jsonrpc":"2.0","id":99,"result":{"stopReason":"refusal"}}' }, { says: "42" }]);
    expect([end.stopReason, end.text]).toEqual(["completed", "42"]);
  });
});

describe("a connection that goes wrong ends the run as an error with what was said", () => {
  test.each([
    ["no JSON", [{ raw: "{" }], /no message of the protocol/],
    ["a batch", [{ raw: "[]" }], /no message of the protocol/],
    ["another protocol", [{ raw: '{"hello":1}' }], /no message of the protocol/],
    ["bytes", [{ binary: "{}" }], /binary/],
    ["a message past its bound", [{ raw: JSON.stringify("x".repeat(4_000_001)) }], /too long/],
    ["text past its bound", [{ floods: 101 }], /more text than is kept/],
  ] as const)("%s", async (_what, plan, why) => {
    const end = await finish([{ says: "partial" }, ...plan, { says: "never read" }, { holds: "never" }]);
    expect(end.stopReason).toBe("error");
    expect(end.diagnostic).toMatch(why);
    expect(end.text).toMatch(/^(?:partial|x+)$/);
  });

  test("messages that come faster than they are read end it", () => {
    const link = new AcpLink();
    for (let sent = 0; sent <= ACP_PENDING_FRAMES_MAX; sent += 1) link.text('{"jsonrpc":"2.0","method":"x"}');
    expect(link.fault?.message).toMatch(/faster than it can be read/);
  });

  test("R150 R158 the agent's process dies in the middle: an error with the partial text, and nobody connects again", async () => {
    const mortal = await AcpAgentProcess.start();
    try {
      const opened: string[] = [];
      const counting = acpProvider({
        timers: systemTimers,
        openWebSocket: (target, ...rest) => {
          opened.push(target.url);
          return openNodeWebSocket(target, ...rest);
        },
      });
      const run = await counting.start(acpRequest({ url: mortal.url() }, [{ says: "partial" }, { exits: 3 }]));
      const result = await run.result;
      expect([result.stopReason, textOf(result)]).toEqual(["error", "partial"]);
      expect(result.diagnostic).toBe("the connection to the agent was lost");
      await run.dispose();
      expect(opened).toHaveLength(1);
    } finally {
      await mortal.stop();
    }
  });
});

describe("stopping", () => {
  test("R149 an agent that ignores a cancel: aborted at once, told once, and disposed within the graces", async () => {
    const from = (await agent.log()).length;
    const { run, told } = await start([{ says: "partial" }, { holds: "deaf" }, { says: "late" }]);
    await agent.reached("deaf");
    const before = Date.now();
    run.cancel();
    run.cancel();
    const result = await run.result;
    expect([result.stopReason, textOf(result), Date.now() - before < 500]).toEqual(["aborted", "partial", true]);
    const steps = told.length;
    const disposal = run.dispose();
    expect(run.dispose()).toBe(disposal);
    await disposal;
    expect(Date.now() - before).toBeLessThan(4_500);
    const events = await eventually(
      () => eventsSince(from),
      (seen) => seen.includes("close"),
    );
    expect(events.filter((event) => event === "cancel")).toHaveLength(1);
    await agent.open("deaf");
    expect(told).toHaveLength(steps);
  });

  test("an agent that dies after a cancel leaves it aborted", async () => {
    const mortal = await AcpAgentProcess.start();
    const run = await provider.start(acpRequest({ url: mortal.url() }, [{ says: "partial" }, { holds: "g" }]));
    await mortal.reached("g");
    run.cancel();
    await mortal.stop();
    await run.dispose();
    expect(await run.result).toMatchObject({ stopReason: "aborted" });
  });

  test("P8 a peer that does not answer the closing handshake is not waited for, and its connection is dropped", async () => {
    let dropped = 0;
    const dropping = acpProvider({
      timers: systemTimers,
      openWebSocket: async (...opening) => ({ ...(await openNodeWebSocket(...opening)), drop: () => (dropped += 1) }),
    });
    const run = await dropping.start(acpRequest({ url: agent.url("deaf") }, [{ holds: "shut" }]));
    await agent.reached("shut");
    await new Promise((resolve) => void setTimeout(resolve, 400));
    const before = Date.now();
    await run.dispose();
    expect([dropped, Date.now() - before < 4_500]).toEqual([1, true]);
  });
});
