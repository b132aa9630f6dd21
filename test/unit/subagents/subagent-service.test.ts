import { describe, expect, test } from "vitest";
import type {
  SubagentProvider,
  SubagentRequest,
  SubagentResult,
  SubagentRun,
} from "../../../src/agent/subagents/provider.ts";
import { SubagentService, type SubagentLifecycleEvent } from "../../../src/agent/subagents/subagent-service.ts";
import { countedIds, fixtureServices } from "../../support/agent-fixture.ts";
import { ReplyModel, textAnswer } from "../../support/reply-model.ts";

const ALL = { outputSchema: true, depthLimit: true, toolFilter: true, persona: true };
const NONE = { outputSchema: false, depthLimit: false, toolFilter: false, persona: false };

function provider(name: string, more: Partial<SubagentProvider> = {}) {
  const started: SubagentRequest[] = [];
  const result: SubagentResult = { output: [{ type: "text", text: "42" }], stopReason: "completed" };
  const start = (request: SubagentRequest): Promise<SubagentRun> => {
    started.push(request);
    const run = { id: request.id, result: Promise.resolve(result), cancel: () => {}, dispose: () => Promise.resolve() };
    return Promise.resolve(run);
  };
  return { started, name, capabilities: ALL, inheritsParentContext: false, start, ...more };
}

function request(more: Partial<SubagentRequest> = {}): SubagentRequest {
  const model = new ReplyModel(() => textAnswer("x"));
  return {
    id: "task-1",
    prompt: "go",
    agent: { name: "a", systemPrompt: "", model, tools: [], hooks: [], maxTurns: 5 },
    parent: { name: "lead", depth: 0, config: {}, services: fixtureServices() },
    signal: new AbortController().signal,
    ...more,
  };
}

function service() {
  const faults: string[] = [];
  const made = new SubagentService({ newId: countedIds("run"), reportFault: (what) => void faults.push(what) });
  return Object.assign(made, { faults });
}

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "started",
    (error: { code?: string; name: string }) => error.code ?? error.name,
  );

describe("registration", () => {
  test("a live name cannot be taken twice; after disposal it can", () => {
    const seam = service();
    const dispose = seam.register(provider("spawn"));
    expect(() => seam.register(provider("spawn"))).toThrow(expect.objectContaining({ code: "DUPLICATE_PROVIDER" }));
    dispose();
    dispose();
    seam.register(provider("spawn"));
    expect(seam.list()).toEqual(["spawn"]);
  });

  test("a listener that refuses a provider undoes its registration", () => {
    const seam = service();
    seam.listen((event) => {
      if (event.type === "subagent/provider-added") throw new Error("not this one");
    });
    expect(() => seam.register(provider("spawn"))).toThrow("not this one");
    expect(seam.list()).toEqual([]);
  });
});

describe("start", () => {
  test("an unknown provider, then a missing capability in order, then depth, then schema: nothing exists before", async () => {
    const seam = service();
    const bare = provider("bare", { capabilities: NONE });
    const full = provider("full");
    seam.register(bare);
    seam.register(full);
    const everything = { outputSchema: {}, maxDepth: -1, toolFilter: {}, persona: "p" };
    expect(await codeOf(seam.start("ghost", request(everything)))).toBe("NO_PROVIDER");
    for (const [field, value] of Object.entries(everything)) {
      expect(await codeOf(seam.start("bare", request({ [field]: value })))).toBe("UNSUPPORTED_CAPABILITY");
    }
    await expect(seam.start("bare", request(everything))).rejects.toThrow(/outputSchema/);
    for (const maxDepth of [-1, -0, 1.5, Number.NaN, 2 ** 60]) {
      expect(await codeOf(seam.start("full", request({ maxDepth, outputSchema: {} })))).toBe("TypeError");
    }
    expect(await codeOf(seam.start("full", request({ maxDepth: 0 })))).toBe("DEPTH_EXCEEDED");
    expect(await codeOf(seam.start("full", request({ maxDepth: 1, outputSchema: { type: "array" } })))).toBe(
      "UNSUPPORTED_SCHEMA",
    );
    expect([...bare.started, ...full.started]).toEqual([]);
    expect(await codeOf(seam.start("full", request({ maxDepth: 1, outputSchema: { type: "object" } })))).toBe(
      "started",
    );
  });

  test("a signal that has fired rejects the start and no event is told", async () => {
    const seam = service();
    seam.register(provider("spawn"));
    const events: SubagentLifecycleEvent[] = [];
    seam.listen((event) => void events.push(event));
    expect(await codeOf(seam.start("spawn", request({ signal: AbortSignal.abort() })))).not.toBe("started");
    expect(events).toEqual([]);
  });
});

describe("lifecycle events", () => {
  test("the first of two listeners throws, the second still sees start and end, in order and paired", async () => {
    const seam = service();
    seam.register(provider("spawn"));
    const events: SubagentLifecycleEvent[] = [];
    seam.listen(() => {
      throw new Error("bad listener");
    });
    seam.listen(() => Promise.reject(new Error("bad async listener")));
    seam.listen((event) => void events.push(event));
    const run = await seam.start("spawn", request());
    await run.result;
    await new Promise((resolve) => setImmediate(resolve));
    const pair = { runId: "run-1", provider: "spawn", id: "task-1" };
    expect(events).toEqual([
      { type: "subagent/start", ...pair },
      {
        type: "subagent/end",
        ...pair,
        stopReason: "completed",
        lastAssistantMessage: [{ type: "text", text: "42" }],
      },
    ]);
    expect(seam.faults).toHaveLength(4);
  });

  test("a result that rejects ends as an error without a message", async () => {
    const seam = service();
    const run = {
      id: "x",
      result: Promise.reject(new Error("fault")),
      cancel: () => {},
      dispose: () => Promise.resolve(),
    };
    seam.register(provider("spawn", { start: () => Promise.resolve(run) }));
    const events: SubagentLifecycleEvent[] = [];
    seam.listen((event) => void events.push(event));
    await (await seam.start("spawn", request())).result.catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    expect(events.at(-1)).toEqual({
      type: "subagent/end",
      runId: "run-1",
      provider: "spawn",
      id: "x",
      stopReason: "error",
    });
  });
});
