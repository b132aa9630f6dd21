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

  it("takes a checkpoint out of the config as the body's own, and refuses what else of a place it cannot honour", async () => {
    const { deps, commands } = accepting();
    const post = (configurable: object) =>
      ask(deps, route, { method: "POST", json: body({ config: { configurable } }, "echo") });
    await post({ checkpoint_id: "c1" });
    expect(commands.map(({ body: taken }) => taken)).toMatchObject([
      { checkpoint_id: "c1", config: { configurable: {} } },
    ]);
    const refused = [
      await post({ thread_id: "of-nobody" }),
      await post({ checkpoint_ns: "child:1" }),
      await post({ checkpoint_map: { "child:1": "c1" } }),
    ];
    const failures = await Promise.all(refused.map(async (response) => response.json<Failure>()));
    expect(refused.map(({ status }) => status)).toEqual([422, 422, 422]);
    expect(failures.map(({ code }) => code)).toEqual(["invalid_request", "unsupported_option", "unsupported_option"]);
    expect(commands).toHaveLength(1);
    const own = await post({ thread_id: "t" });
    expect(own.status).toBe(route.startsWith("/threads/t/") ? 200 : 422);
  });
});

describe("POST /runs/batch", () => {
  it("treats a place in a run's config as the other routes do, and names the run", async () => {
    const { deps, commands } = accepting();
    const runs = [{}, { thread_id: "t" }].map((configurable) => body({ config: { configurable } }, "echo"));
    const refused = await ask(deps, "/runs/batch", { method: "POST", json: runs });
    expect(refused.status).toBe(422);
    expect((await refused.json<Failure>()).details).toMatchObject({ index: 1 });
    expect(commands).toEqual([]);
  });
});
