import { expect, test, describe } from "vitest";
import { parseDeputyConfig } from "../../../src/config.ts";
import { withoutOperatorSecrets, withOperatorSecrets } from "../../../src/agent/subagents/operator-secrets.ts";
import { operatorSummaries } from "../../../src/agent/subagents/operator-summaries.ts";
import { SubagentRegistry } from "../../../src/agent/subagents/registry.ts";
import { remoteChild } from "../../../src/agent/subagents/remote-child.ts";
import { acpDefinition } from "../../../src/domain/delegation/acp-definition.ts";
import { createSubagentBodySchema } from "../../../src/protocol/subagents.ts";

const URL_OF_AGENT = "wss://agent.example/acp";
const SECRET = "Bearer marker-secret";
const ACP = { url: URL_OF_AGENT, headers: { authorization: SECRET } };
const REMOTE = { description: "does it elsewhere", provider: "acp" as const, acp: ACP };

const parse = (agent: unknown, more: object = {}) =>
  parseDeputyConfig({ subagents: { custom_agents: { remote: agent }, ...more } });

const errorOf = (agent: unknown, more: object = {}): string => {
  try {
    parse(agent, more);
  } catch (error) {
    return (error as Error).message;
  }
  return "accepted";
};

describe("definitions of provider acp", () => {
  test("R158 are complete with an address: directory and policy have defaults, everything else is the agent's own", () => {
    const { subagents } = parse(REMOTE);
    const definition = new SubagentRegistry(subagents).find("remote");
    expect(definition).toMatchObject({
      provider: "acp",
      timeoutSeconds: 900,
      systemPrompt: "",
      acp: { ...ACP, cwd: "/", permission: "reject" },
    });
    expect(remoteChild(definition!)).toMatchObject({ tools: [], hooks: [], systemPrompt: "", model: { name: "acp" } });
  });

  test.each([
    ["system_prompt", "You are"],
    ["tools", ["bash"]],
    ["disallowed_tools", []],
    ["model", "inherit"],
    ["max_turns", 50],
    ["max_depth", 3],
  ])("R139 %s is refused by name, whatever its value, in the configuration and over the API", (field, value) => {
    expect(errorOf({ ...REMOTE, [field]: value })).toMatch(new RegExp(`it takes no ${field}`));
    const body = createSubagentBodySchema.safeParse({ name: "remote", ...REMOTE, [field]: value });
    expect(body.error?.issues[0]?.message).toMatch(new RegExp(`it takes no ${field}`));
  });

  test("an address without the provider is refused, and the provider without an address", () => {
    const local = { description: "d", system_prompt: "You are", acp: ACP };
    expect(errorOf(local)).toMatch(/a subagent of this process takes no acp/);
    expect(errorOf({ description: "d", provider: "acp" })).toMatch(/remote\.acp/);
    expect(errorOf({ description: "d", provider: "telnet", system_prompt: "p" })).toMatch(/'spawn' \| 'fork'/);
  });

  test.each([
    ["https://agent.example/acp"],
    ["ws://agent.example/acp"],
    ["ws://127.0.0.1.evil.example/"],
    ["ws://localhost@evil.example/"],
    ["wss://user:pass@agent.example/"],
    ["wss://agent.example/#part"],
    ["wss://agent.example\\@evil.example/"],
    ["ws://169.254.169.254/latest"],
    ["wss://"],
    [`wss://agent.example/${"x".repeat(2_001)}`],
  ])("the address %s is refused", (url) => {
    expect(errorOf({ ...REMOTE, acp: { url } })).toMatch(/acp\.url/);
  });

  test.each([
    "wss://agent.example",
    "wss://agent.example:8443/acp?x=1",
    "ws://localhost:3000/",
    "ws://127.0.0.1:1",
    "ws://[::1]:9/a",
  ])("the address %s is taken", (url) => expect(errorOf({ ...REMOTE, acp: { url } })).toBe("accepted"));

  test.each([
    [{ Authorization: "x" }],
    [{ host: "x" }],
    [{ "sec-websocket-protocol": "x" }],
    [{ "x-token": "a\r\nb: c" }],
    [{ "x-token": "" }],
    [Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`x-${index}`, "v"]))],
  ])("headers %j are refused", (headers) => {
    expect(errorOf({ ...REMOTE, acp: { ...ACP, headers } })).toMatch(/acp\.headers/);
  });

  test("R139 an override of its model or turns is refused; its time may be laid over it", () => {
    expect(errorOf(REMOTE, { agents: { remote: { max_turns: 3 } } })).toMatch(/agents\.remote: .*timeout_seconds/);
    const { subagents } = parse(REMOTE, { agents: { remote: { timeout_seconds: 5 } } });
    expect(new SubagentRegistry(subagents).find("remote")?.timeoutSeconds).toBe(5);
    const acp = { ...ACP, cwd: "/", permission: "reject" as const };
    const definition = acpDefinition({ description: "d", timeoutSeconds: 9, acp });
    const managed = [{ name: "remote", version: 1, definition }];
    const laid = parseDeputyConfig({ subagents: { agents: { remote: { max_turns: 3 } } } }).subagents;
    expect(() => remoteChild(new SubagentRegistry(laid, null, managed).find("remote")!)).toThrow(
      /cannot set its model/,
    );
  });
});

describe("secrets of provider acp", () => {
  const { subagents } = parse(REMOTE);
  const definition = new SubagentRegistry(subagents).find("remote")!;

  test("a bad value is named by its field; the error does not repeat headers", () => {
    const message = errorOf({ ...REMOTE, acp: { ...ACP, headers: { authorization: `${SECRET}\n` } } });
    expect(message).toMatch(/acp\.headers/);
    expect(message).not.toContain("marker-secret");
    const whole = errorOf({ acp: ACP, provider: "acp", description: "d", tools: null });
    expect(whole).toMatch(/takes no tools \(got .*agent\.example/);
    expect(whole).not.toContain("marker-secret");
  });

  test("what everyone may list has none", () => {
    expect(JSON.stringify(operatorSummaries(subagents))).not.toContain("marker-secret");
  });

  test("a batch's snapshot has none of a configured agent; the attempt takes them for the same address only", () => {
    const snapshot = withoutOperatorSecrets(definition);
    expect(JSON.stringify(snapshot)).not.toContain("marker-secret");
    expect(withOperatorSecrets(snapshot, subagents)).toEqual(definition);
    const moved = parse({ ...REMOTE, acp: { ...ACP, url: "wss://other.example/" } }).subagents;
    expect(withOperatorSecrets(snapshot, moved)).toEqual(snapshot);
    expect(withOperatorSecrets({ ...snapshot, source: "managed" }, subagents).acp?.headers).toEqual({});
  });
});
