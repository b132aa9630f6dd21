/**
 * The contract of every provider of the seam (docs/subagents.md), to be run whole: a provider passes all of it.
 * The subject says how its provider runs a planned child; everything else goes through `SubagentService`, as callers do.
 */
import { describe, expect, test } from "vitest";
import { decideOutcome } from "../../src/domain/delegation/settle-outcome.ts";
import {
  textOf,
  type SubagentProvider,
  type SubagentRequest,
  type SubagentRun,
} from "../../src/agent/subagents/provider.ts";
import { SubagentService, type SubagentLifecycleEvent } from "../../src/agent/subagents/subagent-service.ts";
import { countedIds } from "./agent-fixture.ts";
import { gate, type ChildPlan } from "./child-plan.ts";

export interface SubjectChild {
  readonly request: SubagentRequest;
  /** What the child was asked of whoever answers for it, in order: its model, or another process. */
  readonly asked: readonly unknown[];
}

export interface ProviderSubject {
  readonly provider: () => SubagentProvider;
  readonly child: (plan: ChildPlan, more?: Partial<SubagentRequest>) => SubjectChild;
  /** A child that reports these values, one a turn. Due where the provider has `outputSchema`. */
  readonly reporting?: (values: readonly Record<string, unknown>[], more?: Partial<SubagentRequest>) => SubjectChild;
}

const CAPABILITIES = ["outputSchema", "depthLimit", "toolFilter", "persona"] as const;
const ALL = { outputSchema: true, depthLimit: true, toolFilter: true, persona: true };
const NONE = { outputSchema: false, depthLimit: false, toolFilter: false, persona: false };
const OPTIONS = { outputSchema: { type: "object" }, maxDepth: 3, toolFilter: { deny: [] }, persona: "p" };
/** Each option with a value that shows, in what the child was asked and in its result. The child's one tool is `hold`. */
const HONOURED = {
  outputSchema: { asked: OPTIONS.outputSchema, isSeen: (told: string) => told.includes('"structured":{}') },
  maxDepth: { asked: 1, isSeen: () => true },
  toolFilter: { asked: { deny: ["hold"] }, isSeen: (told: string) => !told.includes('"name":"hold"') },
  persona: { asked: "PERSONA-MARK", isSeen: (told: string) => told.includes("PERSONA-MARK") },
};
const OPTION_OF = {
  outputSchema: "outputSchema",
  depthLimit: "maxDepth",
  toolFilter: "toolFilter",
  persona: "persona",
};

const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function seamOf(provider: SubagentProvider) {
  const faults: unknown[] = [];
  const seam = new SubagentService({
    newId: countedIds("run"),
    reportFault: (_what, error) => void faults.push(error),
  });
  seam.register(provider);
  const events: SubagentLifecycleEvent[] = [];
  seam.listen((event) => void events.push(event));
  return { seam, faults, events };
}

const refusal = async (work: Promise<unknown>): Promise<{ code?: string; message: string }> =>
  work.then(
    () => ({ message: "it started" }),
    (error: Error) => error,
  );

/** The first of two listeners throws, the second still sees start and end of the same run. */
export async function tellsEveryListener(
  seam: Pick<SubagentService, "listen" | "start">,
  provider: string,
  request: SubagentRequest,
): Promise<void> {
  const seen: string[] = [];
  seam.listen(() => {
    throw new Error("bad listener");
  });
  seam.listen((event) => void seen.push(event.type));
  const run = await seam.start(provider, request);
  expect(textOf(await run.result)).toBe("42");
  await run.dispose();
  await later();
  expect(seen).toEqual(["subagent/start", "subagent/end"]);
}

export function providerSuite(subject: ProviderSubject): void {
  registrationSuite(subject);
  startSuite(subject);
  resultSuite(subject);
  structuredSuite(subject);
  stoppingSuite(subject);
  eventSuite(subject);
  goingOnSuite(subject);
}

function registrationSuite({ provider, child }: ProviderSubject): void {
  describe("registration", () => {
    test("R153 a live name cannot be taken twice, and is free after its disposal", async () => {
      const { name } = provider();
      const seam = new SubagentService({ newId: countedIds(), reportFault: () => {} });
      const dispose = seam.register(provider());
      expect(() => seam.register(provider())).toThrow(expect.objectContaining({ code: "DUPLICATE_PROVIDER" }));
      dispose();
      expect((await refusal(seam.start(name, child([{ says: "42" }]).request))).code).toBe("NO_PROVIDER");
      seam.register(provider());
      const run = await seam.start(name, child([{ says: "42" }]).request);
      expect(textOf(await run.result)).toBe("42");
      await run.dispose();
    });

    test("a provider that goes does not take its running children along", async () => {
      const seam = new SubagentService({ newId: countedIds(), reportFault: () => {} });
      const dispose = seam.register(provider());
      const held = gate();
      const run = await seam.start(provider().name, child([{ holds: held }, { says: "42" }]).request);
      await held.reached;
      dispose();
      held.open();
      expect(await run.result).toMatchObject({ stopReason: "completed" });
      await run.dispose();
    });
  });
}

function startSuite({ provider, child, reporting }: ProviderSubject): void {
  describe("start", () => {
    test("an unknown provider is refused by NO_PROVIDER, before its options are looked at", async () => {
      const { seam } = seamOf(provider());
      const { request, asked } = child([{ says: "42" }], { ...OPTIONS, maxDepth: -1 });
      expect((await refusal(seam.start("ghost", request))).code).toBe("NO_PROVIDER");
      expect(asked).toHaveLength(0);
    });

    test.each(CAPABILITIES)(
      "R138 R141 an option that needs %s is refused where it is missing, in the order of checks",
      async (at) => {
        const missing = CAPABILITIES.slice(CAPABILITIES.indexOf(at));
        const capabilities = { ...ALL, ...Object.fromEntries(missing.map((each) => [each, false])) };
        const { seam, events } = seamOf({ ...provider(), capabilities });
        // A bad depth would be a TypeError: capabilities are checked first.
        const { request, asked } = child([{ says: "42" }], { ...OPTIONS, maxDepth: -1 });
        const error = await refusal(seam.start(provider().name, request));
        expect(error.code).toBe("UNSUPPORTED_CAPABILITY");
        expect(error.message).toContain(`'${provider().name}'`);
        expect(CAPABILITIES.filter((each) => error.message.includes(each))).toEqual([at]);
        expect([events.slice(1), asked]).toEqual([[], []]);
      },
    );

    test.each(CAPABILITIES)(
      "R139 what the provider says of %s is true: honoured, or refused before a child exists",
      async (each) => {
        const { seam, events } = seamOf(provider());
        const option = OPTION_OF[each] as keyof typeof HONOURED;
        const more = { [option]: HONOURED[option].asked };
        const isReporting = each === "outputSchema" && reporting !== undefined;
        const { request, asked } = isReporting ? reporting([{}], more) : child([{ says: "42" }], more);
        if (!provider().capabilities[each]) {
          expect((await refusal(seam.start(provider().name, request))).code).toBe("UNSUPPORTED_CAPABILITY");
          expect([events, asked]).toEqual([[], []]);
          return;
        }
        const run = await seam.start(provider().name, request);
        const result = await run.result;
        await run.dispose();
        expect(result.stopReason).toBe("completed");
        expect(HONOURED[option].isSeen(JSON.stringify([asked, result]))).toBe(true);
      },
    );

    test("R139 a child deeper than `maxDepth` is refused, where the provider takes the option", async () => {
      const { seam, events } = seamOf(provider());
      const { request, asked } = child([{ says: "42" }], { maxDepth: 0 });
      const code = provider().capabilities.depthLimit ? "DEPTH_EXCEEDED" : "UNSUPPORTED_CAPABILITY";
      expect((await refusal(seam.start(provider().name, request))).code).toBe(code);
      expect([events, asked]).toEqual([[], []]);
    });

    test("R142 a prompt in blocks is taken as a string is", async () => {
      const { seam } = seamOf(provider());
      const prompt = [
        { type: "text", text: "first" },
        { type: "text", text: "second" },
      ] as const;
      const run = await seam.start(provider().name, child([{ says: "42" }], { prompt }).request);
      expect(textOf(await run.result)).toBe("42");
      await run.dispose();
    });

    test("an option that is undefined is not set", async () => {
      const { seam } = seamOf({ ...provider(), capabilities: NONE });
      const unset = Object.fromEntries(Object.keys(OPTIONS).map((option) => [option, undefined]));
      const run = await seam.start(provider().name, child([{ says: "42" }], unset).request);
      expect(textOf(await run.result)).toBe("42");
      await run.dispose();
    });

    test("R152 a signal that has fired rejects the start, of the service and of the provider, and nothing is told", async () => {
      const { seam, events } = seamOf(provider());
      const { request, asked } = child([{ says: "42" }], { signal: AbortSignal.abort(new Error("too late")) });
      await expect(seam.start(provider().name, request)).rejects.toThrow("too late");
      await expect(provider().start(request)).rejects.toThrow("too late");
      await later();
      expect([events, asked]).toEqual([[], []]);
    });
  });
}

function resultSuite({ provider, child }: ProviderSubject): void {
  const finish = async (plan: ChildPlan) => {
    const { seam } = seamOf(provider());
    const run = await seam.start(provider().name, child(plan).request);
    const result = await run.result;
    await run.dispose();
    return { ...result, text: textOf(result), outcome: decideOutcome({ ...result, text: textOf(result) }, 20) };
  };

  describe("result", () => {
    test("R147 completed: the last text, and the delegation completed with it", async () => {
      const end = await finish([{ says: "thinking" }, { says: "42" }]);
      expect(end).toMatchObject({
        text: "42",
        stopReason: "completed",
        outcome: { status: "completed", result: "42" },
      });
    });

    test("R150 a child's failure is a result, never a rejection: what it said is kept, what went wrong stands apart", async () => {
      const end = await finish([{ says: "partial" }, { fails: "model is down" }]);
      expect(end).toMatchObject({ text: "partial", stopReason: "error", outcome: { status: "failed" } });
      expect(end.diagnostic).toContain("model is down");
      expect(end.text).not.toContain("model is down");
    });

    test("max-tokens: completed and marked with usable text, failed without", async () => {
      const end = await finish([{ says: "half an ans", ends: "length" }]);
      expect(end).toMatchObject({ text: "half an ans", stopReason: "max-tokens" });
      expect(end.outcome).toMatchObject({ status: "completed", stopReason: "token_capped" });
      const silent = await finish([{ says: "", ends: "length" }]);
      expect(silent).toMatchObject({ output: [], stopReason: "max-tokens" });
      expect(silent.outcome).toMatchObject({ status: "failed", stopReason: "token_capped" });
    });

    test("refusal: failed", async () => {
      const end = await finish([{ says: "I will not", ends: "content_filter" }]);
      expect(end).toMatchObject({ stopReason: "refusal", outcome: { status: "failed", result: "I will not" } });
    });

    test("R146 a reason that nobody knows is a failure", async () => {
      const { text, stopReason: _known, ...rest } = await finish([{ says: "42" }]);
      const outcome = decideOutcome({ ...rest, text, stopReason: "hibernated" }, 20);
      expect(outcome).toMatchObject({ status: "failed", result: "42", error: expect.stringContaining("hibernated") });
    });

    test("the output is the last text that is not empty, and none when the child never spoke", async () => {
      expect(await finish([{ says: "first" }, { says: "second" }, { says: "" }])).toMatchObject({ text: "second" });
      expect(await finish([{ says: "" }, { says: "" }])).toMatchObject({ output: [], outcome: { status: "failed" } });
    });
  });
}

const ANSWER = { type: "object", properties: { answer: { type: "integer" } }, required: ["answer"] };

/** Run for every provider: one that has no structured output refuses it, whatever the child would have done. */
function structuredSuite({ provider, child, reporting }: ProviderSubject): void {
  describe("structured output", () => {
    const { outputSchema: isSupported } = provider().capabilities;
    const ask = async ({ request, asked }: SubjectChild) => {
      const { seam, events } = seamOf(provider());
      const starting = seam.start(provider().name, { ...request, outputSchema: ANSWER });
      if (!isSupported) {
        await expect(starting).rejects.toMatchObject({ code: "UNSUPPORTED_CAPABILITY" });
        expect([events, asked]).toEqual([[], []]);
        return undefined;
      }
      const run = await starting;
      const result = await run.result;
      await run.dispose();
      return result;
    };

    test("R144 is the first value that fits the schema, or refused", async () => {
      expect(reporting !== undefined).toBe(isSupported);
      const result = await ask(reporting?.([{ answer: "many" }, { answer: 42 }]) ?? child([{ says: '{"answer":42}' }]));
      if (isSupported) expect(result).toMatchObject({ stopReason: "completed", structured: { answer: 42 } });
    });

    test("prose in its place is an error without a structured value, or refused", async () => {
      const result = await ask(child([{ says: "42" }]));
      if (!isSupported) return;
      expect(result).toMatchObject({ stopReason: "error", output: [{ type: "text", text: "42" }] });
      expect(result).not.toHaveProperty("structured");
    });
  });
}

function stoppingSuite({ provider, child }: ProviderSubject): void {
  const heldRun = async (more: Partial<SubagentRequest> = {}) => {
    const held = gate();
    const planned = child([{ says: "partial" }, { holds: held }, { says: "late" }], more);
    const run = await seamOf(provider()).seam.start(provider().name, planned.request);
    await held.reached;
    return { held, run, asked: planned.asked };
  };
  const finishHeld = async ({ held, run }: { held: ReturnType<typeof gate>; run: SubagentRun }) => {
    held.open();
    await run.dispose();
  };

  describe("stopping", () => {
    test("R148 cancel settles as aborted with the partial text, and repeating it changes nothing", async () => {
      const started = await heldRun();
      started.run.cancel("enough");
      started.run.cancel("again");
      const result = await started.run.result;
      expect([result.stopReason, textOf(result)]).toEqual(["aborted", "partial"]);
      expect(decideOutcome({ ...result, text: "partial" }, 20).status).toBe("cancelled");
      await finishHeld(started);
    });

    test("the request's signal, once the child exists, aborts the run as well", async () => {
      const abort = new AbortController();
      const started = await heldRun({ signal: abort.signal });
      abort.abort();
      expect((await started.run.result).stopReason).toBe("aborted");
      await finishHeld(started);
    });

    test("cancel and dispose after completion leave it completed", async () => {
      const run = await seamOf(provider()).seam.start(provider().name, child([{ says: "42" }]).request);
      await run.result;
      run.cancel();
      await run.dispose();
      run.cancel();
      expect(await run.result).toMatchObject({ stopReason: "completed", output: [{ type: "text", text: "42" }] });
    });

    test("R149 dispose of a running child settles it as aborted and waits until it is quiescent; repeats share it", async () => {
      const { held, run, asked } = await heldRun();
      let isQuiescent = false;
      const disposals = [run.dispose(), run.dispose()].map((each) => each.then(() => (isQuiescent = true)));
      expect((await run.result).stopReason).toBe("aborted");
      await later();
      expect(isQuiescent).toBe(false);
      const before = asked.length;
      held.open();
      await Promise.all(disposals);
      await run.dispose();
      await later();
      expect(asked).toHaveLength(before);
    });

    test.each([
      ["completed", [{ says: "42" }]],
      ["failed", [{ fails: "down" }]],
      ["refused", [{ says: "no", ends: "content_filter" }]],
    ] as const)("dispose is harmless once and again after the child %s", async (_how, plan) => {
      const run = await seamOf(provider()).seam.start(provider().name, child(plan).request);
      const { stopReason } = await run.result;
      await run.dispose();
      await run.dispose();
      expect((await run.result).stopReason).toBe(stopReason);
    });

    test("two runs that overlap on one provider do not touch each other", async () => {
      const { seam, events } = seamOf(provider());
      const gates = [gate(), gate()] as const;
      const runs = await Promise.all(
        gates.map((held, index) =>
          seam.start(
            provider().name,
            child([{ holds: held }, { says: `mine ${index}` }], { id: `child-${index}` }).request,
          ),
        ),
      );
      await Promise.all(gates.map((held) => held.reached));
      const [first, second] = runs as [SubagentRun, SubagentRun];
      first.cancel();
      expect((await first.result).stopReason).toBe("aborted");
      gates[0].open();
      await first.dispose();
      gates[1].open();
      const result = await second.result;
      expect([result.stopReason, textOf(result), second.id]).toEqual(["completed", "mine 1", "child-1"]);
      await second.dispose();
      const ends = events.filter((event) => event.type === "subagent/end");
      expect(ends.map(({ id, stopReason }) => [id, stopReason])).toEqual([
        ["child-0", "aborted"],
        ["child-1", "completed"],
      ]);
    });
  });
}

function eventSuite({ provider, child }: ProviderSubject): void {
  describe("events", () => {
    test("R155 start precedes end, both under one run id; the end has the last text", async () => {
      const { seam, events } = seamOf(provider());
      const run = await seam.start(provider().name, child([{ says: "42" }]).request);
      expect(events.map(({ type }) => type)).toEqual(["subagent/start"]);
      await run.result;
      await later();
      const pair = { runId: "run-1", provider: provider().name, id: "child-1" };
      const lastAssistantMessage = [{ type: "text", text: "42" }];
      expect(events).toEqual([
        { type: "subagent/start", ...pair },
        { type: "subagent/end", ...pair, stopReason: "completed", lastAssistantMessage },
      ]);
      await run.dispose();
    });

    test("R157 the first of two listeners throws, the second still sees start and end", async () => {
      const { seam, faults } = seamOf(provider());
      await tellsEveryListener(seam, provider().name, child([{ says: "42" }]).request);
      expect(faults).toHaveLength(2);
    });
  });
}

/** Presence of the method is the capability (R140): what is there works, what is not there is never called. */
function goingOnSuite({ provider, child }: ProviderSubject): void {
  describe("going on", () => {
    test("R152 R155 a resumed child is a fresh run, told by a start and an end of its own", async () => {
      const { seam, events } = seamOf(provider());
      const plan = [{ says: "42", settles: true }, { says: "84" }] as const;
      const run = await seam.start(provider().name, child(plan).request);
      await run.result;
      if (run.resume === undefined) return run.dispose();
      const next = await run.resume("double it");
      expect(next).not.toBe(run);
      expect([textOf(await next.result), textOf(await run.result)]).toEqual(["84", "42"]);
      await later();
      expect(events.map((event) => [event.type, "runId" in event && event.runId])).toEqual([
        ["subagent/start", "run-1"],
        ["subagent/end", "run-1"],
        ["subagent/start", "run-2"],
        ["subagent/end", "run-2"],
      ]);
      expect(events.at(-1)).toMatchObject({ stopReason: "completed", lastAssistantMessage: [{ text: "84" }] });
      await Promise.all([run.dispose(), next.dispose()]);
      await expect(next.resume?.("more")).rejects.toMatchObject({ code: "NOT_RESUMABLE" });
    });

    test("R151 a message to a running child reaches it", async () => {
      const held = gate();
      const planned = child([{ holds: held }, { says: "42" }]);
      const run = await seamOf(provider()).seam.start(provider().name, planned.request);
      await held.reached;
      const sent = run.sendMessage?.("count twice");
      held.open();
      await sent;
      expect(textOf(await run.result)).toBe("42");
      await run.dispose();
      if (run.sendMessage === undefined) return;
      expect(JSON.stringify(planned.asked.at(-1))).toContain("count twice");
      await expect(run.sendMessage("more")).rejects.toMatchObject({ code: "NOT_RESUMABLE" });
    });
  });
}
