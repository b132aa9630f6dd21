import { env } from "cloudflare:test";
import { afterAll, beforeEach, expect, it } from "vitest";
import { operatorSummaries } from "../../../src/agent/subagents/operator-summaries.ts";
import { parseDeputyConfig } from "../../../src/config.ts";
import type { ManagedSubagentView } from "../../../src/protocol/subagents.ts";
import { ask, failure, type Failure, gatewayDeps } from "../../support/gateway.ts";

const DEFINITION = { description: "Audits numbers.", system_prompt: "Secret prompt." };
const BASE = { now: () => Date.UTC(2026, 0, 2) };

const clear = async () => {
  await env.DB.exec("DELETE FROM subagent_definitions");
};
beforeEach(clear);
afterAll(clear);

const deps = () => gatewayDeps(BASE);

/** The deployment after its configuration took the name. */
function depsWithAuditor() {
  const { subagents } = parseDeputyConfig({ subagents: { custom_agents: { auditor: DEFINITION } } });
  return gatewayDeps({ subagents: { ...deps().subagents, operators: () => operatorSummaries(subagents) } });
}

const send = (method: string, path: string, json?: object, over = deps()) =>
  ask(over, `/subagents${path}`, { method, key: "key-admin", ...(json === undefined ? {} : { json }) });

const names = async (key: string, over = deps()) =>
  (await (await ask(over, "/subagents", { key })).json<ManagedSubagentView[]>()).map((each) => each.name);

it("R5 an administrator creates, reads, replaces, switches and deletes a definition", async () => {
  const created = await send("POST", "", { name: "auditor", ...DEFINITION });
  const view = await created.json();
  expect(created.status).toBe(201);
  expect(view).toEqual({
    name: "auditor",
    source: "managed",
    version: 1,
    enabled: true,
    shadowed_by: null,
    ...DEFINITION,
    tools: null,
    disallowed_tools: ["task", "ask_clarification", "present_files"],
    model: "inherit",
    max_turns: 50,
    timeout_seconds: 900,
    provider: "spawn",
    max_depth: 3,
    created_at: "2026-01-02T00:00:00.000Z",
    updated_at: "2026-01-02T00:00:00.000Z",
    updated_by: "root",
  });
  expect(await (await send("GET", "/auditor")).json()).toEqual(view);
  const changed = await send("PUT", "/auditor", { version: 1, ...DEFINITION, tools: ["bash"], max_depth: 1 });
  expect(await changed.json()).toMatchObject({ version: 2, tools: ["bash"], max_depth: 1 });
  expect(await (await send("POST", "/auditor/disable")).json()).toMatchObject({ version: 3, enabled: false });
  expect(await (await send("POST", "/auditor/enable")).json()).toMatchObject({ version: 4, enabled: true });
  expect((await send("DELETE", "/auditor")).status).toBe(204);
  expect(await failure(await send("GET", "/auditor"))).toEqual([404, "not_found"]);
});

it("refuses a name that is stored, a version that is not the newest, and what is missing", async () => {
  await send("POST", "", { name: "auditor", ...DEFINITION });
  expect(await failure(await send("POST", "", { name: "auditor", ...DEFINITION }))).toEqual([409, "already_exists"]);
  await send("PUT", "/auditor", { version: 1, ...DEFINITION });
  const stale = await send("PUT", "/auditor", { version: 1, ...DEFINITION });
  expect([stale.status, await stale.json()]).toMatchObject([
    409,
    { code: "version_conflict", details: { version: 2 } },
  ]);
  for (const [method, path, json] of [
    ["PUT", "/ghost", { version: 1, ...DEFINITION }],
    ["POST", "/ghost/enable", undefined],
    ["POST", "/ghost/disable", undefined],
    ["DELETE", "/ghost", undefined],
    // A built-in is nobody's to change here.
    ["DELETE", "/bash", undefined],
  ] as const) {
    expect(await failure(await send(method, path, json)), `${method} ${path}`).toEqual([404, "not_found"]);
  }
});

it("refuses fields out of their range and providers there are none of, naming what is allowed", async () => {
  for (const wrong of [
    { max_turns: 0 },
    { max_turns: 1_001 },
    { timeout_seconds: 86_401 },
    { max_depth: 0 },
    { max_depth: 4 },
    { description: "" },
    { system_prompt: "x".repeat(100_001) },
    { name: "a b" },
  ]) {
    const refused = await send("POST", "", { name: "auditor", ...DEFINITION, ...wrong });
    expect(await failure(refused), JSON.stringify(wrong).slice(0, 40)).toEqual([422, "invalid_request"]);
  }
  const provider = await send("POST", "", { name: "auditor", ...DEFINITION, provider: "telnet" });
  expect([provider.status, (await provider.json<Failure>()).message]).toEqual([
    422,
    'body.provider: must be one of "spawn", "fork", "acp"',
  ]);
  expect(await names("key-admin")).toEqual(["general-purpose", "bash"]);
});

it("a caller without the role sees what they may use, without prompts, and changes nothing", async () => {
  await send("POST", "", { name: "auditor", ...DEFINITION });
  await send("POST", "", { name: "resting", ...DEFINITION, enabled: false });
  const list = await (await ask(deps(), "/subagents", { key: "key-alice" })).json<object[]>();
  expect(list.at(-1)).toEqual({ name: "auditor", source: "managed", description: DEFINITION.description });
  expect(list).toHaveLength(3);
  expect(JSON.stringify(list)).not.toContain("prompt");
  const one = await (await ask(deps(), "/subagents/auditor", { key: "key-bob" })).json();
  expect(one).toEqual(list.at(-1));
  expect(await failure(await ask(deps(), "/subagents/resting"))).toEqual([404, "not_found"]);
  const attempts = [
    ["POST", "/subagents", { name: "mine", ...DEFINITION }],
    ["PUT", "/subagents/auditor", { version: 1, ...DEFINITION }],
    ["POST", "/subagents/auditor/disable", undefined],
    ["POST", "/subagents/resting/enable", undefined],
    ["DELETE", "/subagents/auditor", undefined],
  ] as const;
  for (const [method, path, json] of attempts) {
    const refused = await ask(deps(), path, { method, ...(json === undefined ? {} : { json }) });
    expect(await failure(refused), `${method} ${path}`).toEqual([403, "forbidden"]);
  }
  expect(await names("key-admin")).toEqual(["general-purpose", "bash", "auditor", "resting"]);
});

it("R7 a name with an owner is kept, marked with the owner and not offered, also when configuration takes it later", async () => {
  const created = await send("POST", "", { name: "bash", ...DEFINITION });
  expect([created.status, await created.json()]).toMatchObject([201, { shadowed_by: "built_in", enabled: true }]);
  expect(await (await send("GET", "/bash")).json()).toMatchObject({ source: "managed", shadowed_by: "built_in" });
  expect(await (await ask(deps(), "/subagents/bash")).json()).toMatchObject({ source: "built_in" });
  await send("POST", "", { name: "auditor", ...DEFINITION });
  expect(await names("key-alice")).toEqual(["general-purpose", "bash", "auditor"]);
  const later = depsWithAuditor();
  const list = await (await ask(later, "/subagents", { key: "key-alice" })).json<{ name: string; source: string }[]>();
  expect(list.map(({ name, source }) => `${name} ${source}`)).toEqual([
    "general-purpose built_in",
    "bash built_in",
    "auditor config",
  ]);
  expect(await (await send("GET", "/auditor", undefined, later)).json()).toMatchObject({
    shadowed_by: "config",
    version: 1,
  });
  // The name is free again: so is the definition.
  expect(await (await send("GET", "/auditor")).json()).toMatchObject({ shadowed_by: null, version: 1 });
});

it("R158 R139 an agent over acp is stored with its address; what it has of its own is refused; only administrators see headers", async () => {
  const acp = { url: "wss://agent.example/acp", headers: { authorization: "Bearer marker-secret" } };
  const remote = { name: "remote", description: "Works elsewhere.", provider: "acp", acp };
  const refused = await send("POST", "", { ...remote, system_prompt: "You are", tools: ["bash"] });
  expect([refused.status, (await refused.json<Failure>()).message]).toEqual([
    422,
    expect.stringMatching(/own prompt, tools, model and bounds; it takes no system_prompt, tools/),
  ]);
  const unsafe = await send("POST", "", { ...remote, acp: { ...acp, url: "ws://169.254.169.254/" } });
  expect([unsafe.status, (await unsafe.json<Failure>()).message]).toEqual([
    422,
    expect.stringMatching(/acp\.url: must be wss/),
  ]);
  const created = await send("POST", "", remote);
  const view = await created.json<ManagedSubagentView>();
  expect([created.status, view]).toMatchObject([
    201,
    { provider: "acp", acp: { ...acp, cwd: "/", permission: "reject" }, timeout_seconds: 900 },
  ]);
  expect(Object.keys(view)).not.toContain("system_prompt");
  expect(await (await send("GET", "/remote")).json()).toEqual(view);
  const changed = await send("PUT", "/remote", {
    version: 1,
    description: "Moved.",
    provider: "acp",
    acp: { url: acp.url },
  });
  expect(await changed.json()).toMatchObject({ version: 2, acp: { headers: {} } });
  await send("PUT", "/remote", { version: 2, description: "Back.", provider: "acp", acp });
  for (const path of ["/subagents", "/subagents/remote"]) {
    const seen = await (await ask(deps(), path, { key: "key-alice" })).text();
    expect(seen).toContain("Back.");
    expect(seen).not.toMatch(/marker-secret|agent\.example/);
  }
});
