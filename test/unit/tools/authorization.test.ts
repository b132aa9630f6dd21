import { AIMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { assembleLeadAgent } from "../../../src/agent/lead/assemble-lead-agent.ts";
import type { ModelRequest } from "../../../src/agent/models/model.ts";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import {
  POLICY_ANSWER_MS_MAX,
  ToolAuthorization,
  type ToolDecision,
  type ToolPolicy,
} from "../../../src/agent/tools/authorization.ts";
import { assertToolNames, configuredPolicy } from "../../../src/agent/tools/configured-policy.ts";
import { workspaceTools } from "../../../src/agent/tools/workspace-tools.ts";
import { parseDeputyConfig, type DeputyConfigInput } from "../../../src/config.ts";
import type { Role } from "../../../src/domain/trust/principal.ts";
import { humanInput, plainTool, succeeded, toolResults } from "../../support/agent-fixture.ts";
import { leadFixture } from "../../support/lead-fixture.ts";
import { ManualTimers } from "../../support/manual-timers.ts";
import { catalogOf, promptOf, ReplyModel, resultsIn, textAnswer } from "../../support/reply-model.ts";

const ALICE = { owner: "alice", role: "user" } as const;
const ALLOW: ToolDecision = { kind: "allow" };
const deny = (reason: string): ToolDecision => ({ kind: "deny", reason });

const toolsOf = (tools: DeputyConfigInput["tools"]) => parseDeputyConfig({ tools }).tools;

const callOf = (name: string, args: Record<string, unknown> = {}, id = `call_${name}`) =>
  new AIMessage({ content: "", tool_calls: [{ id, name, args, type: "tool_call" }] });

describe("a tool authorization never fails open (R123)", () => {
  const authorized = (policy: unknown, timers?: ManualTimers) =>
    new ToolAuthorization({
      policy: policy as ToolPolicy,
      principal: ALICE,
      ...(timers === undefined ? {} : { timers }),
    });

  it.each([
    [
      "throws",
      () => {
        throw new Error("db down");
      },
    ],
    [
      "rejects",
      async () => {
        throw new Error("db down");
      },
    ],
    ["gives nothing", () => undefined],
    ["gives true", () => true],
    ["gives an unknown kind", () => ({ kind: "maybe" })],
    ["denies without a reason", () => ({ kind: "deny" })],
  ])("a policy that %s has denied", async (_what, policy) => {
    const decision = await authorized(policy).decide("bash");
    expect(decision).toEqual(deny("the permission check failed"));
    expect(JSON.stringify(decision)).not.toContain("db down");
    expect(authorized(policy).permits("bash")).toBe(false);
  });

  it("a policy that does not answer has denied at its bound, and not before", async () => {
    const timers = new ManualTimers();
    const deciding = authorized(() => new Promise(() => undefined), timers).decide("bash");
    let decision: ToolDecision | undefined;
    void deciding.then((settled) => (decision = settled));
    timers.advance(POLICY_ANSWER_MS_MAX - 1);
    await Promise.resolve();
    expect(decision).toBeUndefined();
    timers.advance(1);
    expect(await deciding).toEqual(deny("the permission check failed"));
  });

  it("one that waits permits only what it was asked about ahead of assembly", async () => {
    const authorization = authorized(async () => ALLOW);
    expect(authorization.permits("bash")).toBe(false);
    await authorization.prepare(["bash"]);
    expect(authorization.permits("bash")).toBe(true);
    expect(authorization.permits("ls")).toBe(false);
  });

  it("the reason is bounded, and the operator learns why a policy failed", async () => {
    expect(await authorized(() => deny("x".repeat(10_000))).decide("bash")).toEqual(deny("x".repeat(500)));
    const told: unknown[] = [];
    const reportFault = (what: string, details: unknown) => void told.push([what, details]);
    const policy: ToolPolicy = () => {
      throw new Error("db down");
    };
    await new ToolAuthorization({ policy, principal: ALICE, reportFault }).decide("bash");
    expect(JSON.stringify(told)).toContain("db down");
  });
});

describe("the configuration's lists (R123)", () => {
  const decided = (tools: DeputyConfigInput["tools"], role: Role, tool: string) =>
    configuredPolicy(toolsOf(tools))({ owner: "alice", role }, tool);

  it("everybody's lists and the role's must both permit", () => {
    expect(decided({}, "user", "bash")).toEqual(ALLOW);
    expect(decided({ roles: { user: { deny: ["bash"] } } }, "user", "bash")).toEqual(
      deny("the role 'user' may not use it"),
    );
    expect(decided({ roles: { user: { deny: ["bash"] } } }, "admin", "bash")).toEqual(ALLOW);
    expect(decided({ roles: { user: { allow: ["ls"] } } }, "user", "bash")).toMatchObject({ kind: "deny" });
    expect(decided({ deny: ["bash"], roles: { admin: { allow: ["bash"] } } }, "admin", "bash")).toEqual(
      deny("this deployment does not offer it"),
    );
    expect(decided({}, "root" as Role, "bash")).toMatchObject({ kind: "deny" });
  });

  it("a name that no tool has is refused at start, with the names there are", () => {
    const wrong = toolsOf({ deny: ["bsh"], roles: { user: { allow: ["ls", "reed"] } } });
    expect(() => assertToolNames(wrong, workspaceTools())).toThrow(
      /tools\.deny: there is no tool 'bsh'\s+tools\.roles\.user\.allow: there is no tool 'reed'\s+the tools are: bash, ls,.*task/s,
    );
    expect(() => assertToolNames(toolsOf({ deny: ["task", "bash"] }), workspaceTools())).not.toThrow();
    expect(() => parseDeputyConfig({ tools: { roles: { root: {} } } })).toThrow(/tools\.roles/);
  });
});

/** A lead under a policy, with a model of the test's own and one more tool. */
function leadUnder(policy: ToolPolicy, model: ReplyModel, prepared?: ToolAuthorization) {
  const seen: string[] = [];
  const secret = plainTool("secret", () => {
    seen.push("executed");
    return succeeded("done");
  });
  const { options, config, admission } = leadFixture({ models: catalogOf(model) });
  const authorization = prepared ?? new ToolAuthorization({ policy, principal: ALICE });
  const agent = assembleLeadAgent(config, { ...options, tools: [...options.tools, secret], authorization });
  const run = async () =>
    (await agent.graph.invoke(humanInput("go", "h1"), { ...config, recursionLimit: 50 })) as unknown as ThreadState;
  return { ...agent, run, seen, admission, config };
}

/** Calls `call` first, then says what came of it. */
const callsOnce = (call: AIMessage, requests: ModelRequest[] = []) =>
  new ReplyModel((request) => {
    requests.push(request);
    return resultsIn(request).length === 0 ? call : textAnswer("over");
  });

const denying =
  (...names: string[]): ToolPolicy =>
  (_who, tool) =>
    names.includes(tool) ? deny("not yours") : ALLOW;

describe("a denied tool (R123)", () => {
  it("R164 is in no request, prompt or descriptor, and its call is answered with the reason, without its effect", async () => {
    const requests: ModelRequest[] = [];
    const lead = leadUnder(denying("secret"), callsOnce(callOf("secret"), requests));
    expect(lead.descriptor.tools).not.toContain("secret");
    const state = await lead.run();
    expect(JSON.stringify(requests[0])).not.toContain("secret");
    const [result] = toolResults(state);
    expect(result).toMatchObject({ status: "error" });
    expect(result!.text).toContain("you may not use the tool 'secret': not yours");
    expect(result!.text).not.toContain("available");
    expect(lead.seen).toEqual([]);
  });

  it("a call of a tool that does not exist names the permitted ones alone", async () => {
    const lead = leadUnder(denying("secret"), callsOnce(callOf("ghost")));
    const [result] = toolResults(await lead.run());
    expect(result!.text).toContain("there is no tool 'ghost'; available: bash, ls");
    expect(result!.text).not.toContain("secret");
  });

  it("a denial that comes after assembly wins, and so does a policy that broke meanwhile", async () => {
    for (const late of [deny("revoked"), undefined]) {
      let answer: unknown = ALLOW;
      const lead = leadUnder(() => answer as ToolDecision, callsOnce(callOf("secret")));
      expect(lead.descriptor.tools).toContain("secret");
      answer = late;
      const [result] = toolResults(await lead.run());
      expect(result).toMatchObject({ status: "error" });
      expect(result!.text).toContain(late === undefined ? "the permission check failed" : "revoked");
      expect(lead.seen).toEqual([]);
    }
  });

  it("`task` denied at assembly: no delegation in tools, prompt and hooks", () => {
    const { descriptor } = leadUnder(denying("task"), new ReplyModel(() => textAnswer("x")));
    expect(descriptor.tools).not.toContain("task");
    expect(descriptor.subagents).toEqual([]);
    expect(descriptor.hooks).not.toContain("subagent_limit");
    expect(descriptor.parts.systemPrompt).not.toContain("subagent_system");
    expect(descriptor.parts.systemPrompt).not.toContain("`task`");
    expect(descriptor.parts.systemPrompt).not.toContain("subagents where that pays");
  });

  it("`bash` denied: nobody is offered the specialist of the shell, who could do nothing", async () => {
    const request = { subagent_type: "bash", description: "d", prompt: "p" };
    const call = new AIMessage({
      content: "",
      tool_calls: [{ id: "call_1", name: "task", args: request, type: "tool_call" }],
    });
    const lead = leadUnder(denying("bash"), callsOnce(call));
    expect(lead.descriptor.subagents).toEqual(["general-purpose"]);
    expect(lead.descriptor.parts.systemPrompt).not.toContain("bash");
    expect(lead.descriptor.parts.tools.find(({ name }) => name === "task")?.description).not.toContain("bash");
    const [result] = toolResults(await lead.run());
    expect(result!.text).toContain("Unknown subagent type 'bash'. Available: general-purpose");
    const allowed = leadUnder(denying("secret"), new ReplyModel(() => textAnswer("x")));
    expect(allowed.descriptor.subagents).toEqual(["general-purpose", "bash"]);
  });

  it.each(["batch_task", "batch_status"])("`%s` denied is named nowhere in the prompt", (name) => {
    const never = async (): Promise<never> => {
      throw new Error("no batch is submitted here");
    };
    const { options, config } = leadFixture({ batches: { submit: never, status: never, cancel: never } });
    const whole = assembleLeadAgent(config, options).descriptor.parts.systemPrompt;
    expect(whole).toContain(name);
    const authorization = new ToolAuthorization({ policy: denying(name), principal: ALICE });
    const { descriptor } = assembleLeadAgent(config, { ...options, authorization });
    expect(descriptor.parts.systemPrompt).not.toContain(name);
    expect(descriptor.tools).not.toContain(name);
  });

  it("`task` denied at its call: a failed delegation in result and ledger at once, without a slot or a child", async () => {
    let allowed = true;
    const requests: ModelRequest[] = [];
    const args = { description: "look", prompt: "look there", subagent_type: "general-purpose" };
    const model = callsOnce(callOf("task", args), requests);
    const lead = leadUnder((_who, tool) => (tool !== "task" || allowed ? ALLOW : deny("revoked")), model);
    allowed = false;
    const state = await lead.run();
    const [result] = toolResults(state);
    expect(result!.additional_kwargs).toMatchObject({ subagent_status: "failed" });
    expect(state.delegations).toMatchObject([{ id: "call_task", status: "failed" }]);
    // In the result's own commit: a run that ends there leaves no entry open.
    let answered = 0;
    for await (const { values } of lead.graph.getStateHistory(lead.config)) {
      const at = values as ThreadState;
      if (toolResults(at).length === 0) continue;
      answered += 1;
      expect(at.delegations).toMatchObject([{ status: "failed" }]);
    }
    expect(answered).toBeGreaterThan(1);
    expect(requests).toHaveLength(2);
    expect(lead.admission.snapshot().running).toBe(0);
  });

  it("holds for children, also when it comes after assembly, and is not in their requests", async () => {
    for (const isLate of [false, true]) {
      const childRequests: ModelRequest[] = [];
      const args = { description: "look", prompt: "child job", subagent_type: "general-purpose" };
      let armed = !isLate;
      const model = new ReplyModel((request) => {
        if (promptOf(request) === "go") {
          return resultsIn(request).length === 0 ? callOf("task", args) : textAnswer("over");
        }
        armed = true;
        childRequests.push(request);
        const [result] = resultsIn(request);
        return result === undefined ? callOf("secret", {}, "inner") : textAnswer(`child: ${result.text}`);
      });
      const lead = leadUnder((_who, tool) => (tool === "secret" && armed ? deny("not yours") : ALLOW), model);
      const state = await lead.run();
      expect(toolResults(state)[0]!.text).toContain("you may not use the tool 'secret': not yours");
      expect(lead.seen).toEqual([]);
      expect(JSON.stringify(childRequests[0]!.tools).includes("secret")).toBe(isLate);
    }
  });
});
