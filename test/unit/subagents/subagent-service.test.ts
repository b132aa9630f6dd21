import { describe, expect, test } from "vitest";
import type {
  SubagentProvider,
  SubagentRequest,
  SubagentResult,
  SubagentRun,
} from "../../../src/agent/subagents/provider.ts";
import type { ToolFilter } from "../../../src/agent/subagents/child-tools.ts";
import { SubagentService, type SubagentLifecycleEvent } from "../../../src/agent/subagents/subagent-service.ts";
import { countedIds, fixtureServices, plainTool, succeeded } from "../../support/agent-fixture.ts";
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

  test("an undone registration is told to those who heard of it, and to nobody else", () => {
    const seam = service();
    const heard: string[][] = [[], []];
    let isRefusing = true;
    seam.listen((event) => void heard[0]?.push(event.type));
    seam.listen((event) => {
      if (isRefusing && event.type === "subagent/provider-added") throw new Error("not this one");
    });
    seam.listen((event) => void heard[1]?.push(event.type));
    expect(() => seam.register(provider("spawn"))).toThrow("not this one");
    expect(heard).toEqual([["subagent/provider-added", "subagent/provider-removed"], []]);
    isRefusing = false;
    seam.register(provider("spawn"));
    expect(seam.list()).toEqual(["spawn"]);
  });

  test("R137 R153 providers coexist under their names, in the order they came, and are told as they come and go", () => {
    const seam = service();
    const events: SubagentLifecycleEvent[] = [];
    seam.listen(() => {
      if (events.length === 2) throw new Error("bad at removal");
    });
    seam.listen((event) => void events.push(event));
    const [spawn, fork] = [provider("spawn"), provider("fork")];
    const dispose = seam.register(spawn);
    seam.register(fork);
    expect([seam.list(), seam.find("fork"), seam.find("acp")]).toEqual([["spawn", "fork"], fork, undefined]);
    dispose();
    dispose();
    expect(seam.list()).toEqual(["fork"]);
    expect(events).toEqual([
      { type: "subagent/provider-added", provider: spawn },
      { type: "subagent/provider-added", provider: fork },
      { type: "subagent/provider-removed", name: "spawn" },
    ]);
    expect(seam.faults).toHaveLength(1);
  });

  test("a disposer that is called late leaves the provider alone that has the name now", () => {
    const seam = service();
    const dispose = seam.register(provider("spawn"));
    dispose();
    const second = provider("spawn");
    seam.register(second);
    dispose();
    expect(seam.find("spawn")).toBe(second);
  });

  test("a disposer that is called late leaves a later registration of the same provider alone", () => {
    const seam = service();
    const spawn = provider("spawn");
    const dispose = seam.register(spawn);
    dispose();
    seam.register(spawn);
    dispose();
    expect(seam.find("spawn")).toBe(spawn);
  });

  test("R156 a listener that fails later than it is told of a provider is reported, and undoes nothing", async () => {
    const seam = service();
    seam.listen(() => Promise.reject(new Error("later")));
    seam.register(provider("spawn"));
    await new Promise((resolve) => setImmediate(resolve));
    expect([seam.list(), seam.faults]).toEqual([["spawn"], ["a listener of subagent/provider-added failed"]]);
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

  test("R138 capability, depth as a value, schema, tool filter, depth reached, signal: in this order", async () => {
    const seam = service();
    const full = provider("full");
    seam.register(full);
    const faults: [Partial<SubagentRequest>, string][] = [
      [{ maxDepth: -1 }, "TypeError: maxDepth must be"],
      [{ outputSchema: { type: "array" } }, "UNSUPPORTED_SCHEMA: (root)"],
      [{ toolFilter: {} }, "TypeError: toolFilter has neither"],
      [{ maxDepth: 0 }, "DEPTH_EXCEEDED: a child of 'lead' would be at depth 1"],
      [{ signal: AbortSignal.abort(new Error("too late")) }, "Error: too late"],
    ];
    for (const [index, [, expected]] of faults.entries()) {
      // The later fault of one option gives way to the earlier one.
      const together = Object.assign(
        {},
        ...faults
          .slice(index)
          .toReversed()
          .map(([fault]) => fault),
      );
      const told = await seam.start("full", request(together)).then(
        () => "started",
        (error: Error & { code?: string }) => `${error.code ?? error.name}: ${error.message}`,
      );
      expect(told.slice(0, expected.length)).toBe(expected);
    }
    expect(full.started).toEqual([]);
  });

  test("R154 a tool filter names tools that the child has, or is refused with those that it has", async () => {
    const seam = service();
    const full = provider("full");
    seam.register(full);
    const agent = {
      ...request().agent,
      tools: [plainTool("look", () => succeeded("")), plainTool("bash", () => succeeded(""))],
    };
    const start = (toolFilter: ToolFilter) => seam.start("full", request({ agent, toolFilter }));
    await expect(start({ allow: ["look"], deny: ["bsh"] })).rejects.toThrow(/names 'bsh'; 'a' has: look, bash/);
    await expect(start({ allow: ["loook"] })).rejects.toThrow(TypeError);
    await start({ allow: [] });
    await start({ deny: ["bash"] });
    expect(full.started.map(({ toolFilter }) => toolFilter)).toEqual([{ allow: [] }, { deny: ["bash"] }]);
  });

  test("R142 the provider gets a copy of the request with every field of it, the caller's is not changed", async () => {
    const seam = service();
    const full = provider("full");
    seam.register(full);
    const asked = request({ label: "count", maxDepth: 1, persona: "", outputSchema: { type: "object" } });
    const before = { ...asked };
    await seam.start("full", asked);
    expect(full.started[0]).toMatchObject(before);
    expect(full.started[0]).not.toBe(asked);
    expect(asked).toEqual(before);
  });

  test("R152 R150 what a provider throws while it starts is the caller's, untouched, and no event is told", async () => {
    const seam = service();
    const fault = new Error("no room");
    seam.register(provider("full", { start: () => Promise.reject(fault) }));
    const events: SubagentLifecycleEvent[] = [];
    seam.listen((event) => void events.push(event));
    await expect(seam.start("full", request())).rejects.toBe(fault);
    expect(events).toEqual([]);
  });

  test("R149 a run that cannot be announced is disposed before its caller gets the fault", async () => {
    const disposed: string[] = [];
    const run = (dispose: () => Promise<void>): SubagentProvider =>
      provider("full", {
        start: ({ id }) => Promise.resolve({ id, result: new Promise(() => {}), cancel: () => {}, dispose }),
      });
    const starting = (made: SubagentProvider) => {
      const seam = new SubagentService({
        newId: () => {
          throw new Error("no entropy");
        },
        reportFault: () => {},
      });
      seam.register(made);
      return seam.start("full", request());
    };
    await expect(starting(run(async () => void disposed.push("a")))).rejects.toThrow("no entropy");
    expect(disposed).toEqual(["a"]);
    const both = await starting(run(() => Promise.reject(new Error("stuck")))).catch((error: AggregateError) => error);
    expect((both as AggregateError).errors.map(({ message }: Error) => message)).toEqual(["no entropy", "stuck"]);
  });

  test("nothing is told while a start is pending; a run is given as it is, and its run id is never another's", async () => {
    const seam = service();
    const starting = Promise.withResolvers<SubagentRun>();
    const made = provider("full", { start: () => starting.promise });
    const dispose = seam.register(made);
    const events: SubagentLifecycleEvent[] = [];
    seam.listen((event) => void events.push(event));
    const both = [seam.start("full", request()), seam.start("full", request())];
    dispose();
    expect(events.splice(0).map(({ type }) => type)).toEqual(["subagent/provider-removed"]);
    const result = Promise.resolve({ output: [], stopReason: "completed" });
    const run = { id: "same", result, cancel: () => {}, dispose: () => Promise.resolve() };
    starting.resolve(run);
    expect(await Promise.all(both)).toEqual([run, run]);
    expect((await both[0]) === run).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    const ids = (type: string) =>
      events.flatMap((event) => (event.type === type && "runId" in event ? [event.runId] : []));
    expect([ids("subagent/start"), ids("subagent/end")]).toEqual([
      ["run-1", "run-2"],
      ["run-1", "run-2"],
    ]);
    // Silent: no message rather than an empty one.
    expect(events.at(-1)).not.toHaveProperty("lastAssistantMessage");
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

  test("R156 whatever a listener throws is told as text, and a sink that throws itself hides no event", async () => {
    const told: string[] = [];
    let isSinkBroken = false;
    const seam = new SubagentService({
      newId: countedIds("run"),
      reportFault: (_what, error) => {
        told.push(error);
        if (isSinkBroken) throw new Error("sink is full");
      },
    });
    seam.register(provider("spawn"));
    const hostile = {
      toString() {
        throw new Error("no text");
      },
    };
    // oxlint-disable-next-line unicorn/no-thenable -- a listener may return any thenable
    const thenable = { then: (_ok: unknown, fail: (error: unknown) => void) => fail(new RangeError("later")) };
    const heard: string[] = [];
    seam.listen(() => {
      throw hostile;
    });
    seam.listen(() => thenable);
    seam.listen((event) => void heard.push(event.type));
    for (isSinkBroken of [false, true]) {
      const run = await seam.start("spawn", request());
      await run.result;
      await new Promise((resolve) => setImmediate(resolve));
    }
    const placeholder = "a value that cannot be shown was thrown";
    expect(told.toSorted()).toEqual([...Array(4).fill("RangeError: later"), ...Array(4).fill(placeholder)]);
    expect(heard).toEqual(["subagent/start", "subagent/end", "subagent/start", "subagent/end"]);
  });

  test("a listener that listens anew while it is told is told of the next event", async () => {
    const seam = service();
    seam.register(provider("spawn"));
    const heard: string[] = [];
    const listen = (): void => {
      seam.listen((event) => {
        heard.push(event.type);
        if (event.type === "subagent/start" && heard.length < 5) listen();
      });
    };
    listen();
    const run = await seam.start("spawn", request());
    await run.result;
    expect(heard).toEqual(["subagent/start", "subagent/end", "subagent/end"]);
  });

  test("R155 the end is told before the caller can act on the result", async () => {
    const seam = service();
    seam.register(provider("spawn"));
    const order: string[] = [];
    seam.listen((event) => void order.push(event.type));
    const run = await seam.start("spawn", request());
    await run.result.then(() => order.push("caller"));
    expect(order).toEqual(["subagent/start", "subagent/end", "caller"]);
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
