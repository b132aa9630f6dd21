/** R186, R188, R189: runtime options of `lead_agent` that cannot be honoured are refused on every route that starts a run. */
import { describe, expect, it } from "vitest";
import { ok } from "../../../src/domain/shared/result.ts";
import type { Run } from "../../../src/protocol/runs.ts";
import type { RunCommand } from "../../../src/protocol/thread-rpc.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, type Failure, gatewayDeps } from "../../support/gateway.ts";

const ROUTES = [
  "/threads/t/runs",
  "/threads/t/runs/stream",
  "/threads/t/runs/wait",
  "/runs",
  "/runs/stream",
  "/runs/wait",
];

const RUN: Run = {
  run_id: "r1",
  thread_id: "t",
  assistant_id: "a",
  created_at: "",
  updated_at: "",
  status: "running",
  metadata: {},
  multitask_strategy: "reject",
};

function accepting() {
  const commands: RunCommand[] = [];
  const threads = new FakeThreads({
    createRun: async (_address, command) => {
      commands.push(command);
      return ok(RUN);
    },
    fetch: async (request) => {
      commands.push(await request.json<RunCommand>());
      return Response.json({});
    },
  });
  const { graphs } = gatewayDeps();
  return { commands, deps: gatewayDeps({ threads, graphs: { ...graphs, models: () => ["fast", "scripted"] } }) };
}

const body = (more: object, assistant = "lead_agent") => ({
  assistant_id: assistant,
  input: { messages: [] },
  ...more,
});

const WRONG: readonly (readonly [string, unknown, RegExp])[] = [
  ["max_total_subagents", "ten", /must be a whole number/],
  ["max_total_subagents", 2.5, /must be a whole number/],
  ["max_concurrent_subagents", true, /must be a whole number/],
  ["max_concurrent_subagents", [2], /must be a whole number/],
  ["subagent_enabled", "false", /must be true or false/],
  ["subagent_enabled", 0, /must be true or false/],
  ["thinking_enabled", "yes", /must be true or false/],
  ["model_name", 7, /must be a string/],
  ["model_name", "gpt-unknown", /no model "gpt-unknown"; must be one of fast, scripted/],
  ["model_name", "", /no model ""; must be one of fast, scripted/],
  ["model_name", "inherit", /must be one of fast, scripted/],
];

describe.each(ROUTES)("POST %s", (route) => {
  it.each(WRONG)(
    "R186 R188 R189 refuses %s %j with its path and what is allowed, before a thread hears of it",
    async (name, value, why) => {
      const { deps, commands } = accepting();
      for (const [place, given] of [
        ["body.config.configurable", { config: { configurable: { [name]: value } } }],
        ["body.context", { context: { [name]: value } }],
      ] as const) {
        const response = await ask(deps, route, { method: "POST", json: body(given) });
        const failed = await response.json<Failure>();
        expect([response.status, failed.code]).toEqual([422, "invalid_request"]);
        expect(failed.message).toMatch(why);
        expect(failed.message.startsWith(`${place}.${name}: `)).toBe(true);
        expect(failed.details?.["issues"]).toEqual([{ path: `${place}.${name}`, message: expect.stringMatching(why) }]);
      }
      expect(commands).toEqual([]);
    },
  );

  it("R189 passes what can be honoured or clamped, and names it does not know, to the thread as they are", async () => {
    const { deps, commands } = accepting();
    const options = {
      model_name: "fast",
      thinking_enabled: false,
      subagent_enabled: true,
      max_total_subagents: 99,
      // No double counts it exactly; it is a whole number all the same.
      max_concurrent_subagents: 1e300,
      plan_mode: "on",
    };
    await ask(deps, route, { method: "POST", json: body({ config: { configurable: options }, context: { mine: 1 } }) });
    expect(commands[0]?.body.config?.configurable).toEqual(options);
    expect(commands[0]?.body.context).toEqual({ mine: 1 });
  });

  it("leaves the options of an operator's own graph alone", async () => {
    const { deps, commands } = accepting();
    const config = { configurable: { model_name: 7, subagent_enabled: "maybe" } };
    await ask(deps, route, { method: "POST", json: body({ config }, "echo") });
    expect(commands[0]?.body.config).toEqual(config);
  });
});
