import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, type ThreadWakes, tomorrow, withWakes } from "../../support/thread-wakes.ts";

const RETRY_MS_MAX = 10_000;

/** The real D1, whose `batch` fails while told to. */
function failing(isDown: () => boolean): D1Database {
  return new Proxy(env.DB, {
    get: (db, name) => {
      if (name !== "batch") return Reflect.get(db, name).bind(db) as unknown;
      return async (statements: D1PreparedStatement[]) => {
        if (isDown()) throw new Error("D1_ERROR: overloaded");
        return db.batch(statements);
      };
    },
  });
}

async function eventsInD1(threadId: string): Promise<string[]> {
  const told = env.DB.prepare("SELECT event_type FROM run_events WHERE thread_id = ?1 ORDER BY seq").bind(threadId);
  return (await told.all<{ event_type: string }>()).results.map(({ event_type: type }) => type);
}

describe("the alarm", () => {
  it("P1: brings the events that D1 refused, when nobody asks for them", async () => {
    await withWakes(async (thread) => {
      let isDown = false;
      const faults: string[] = [];
      let later = 0;
      const runtime = await thread.create({
        db: failing(() => isDown),
        report: (what) => void faults.push(what),
        now: () => tomorrow() + later,
      });
      isDown = true;
      const { runId } = await startRun(runtime, "@ say done");
      await runtime.context.live.get(runId)!.done;
      const at = await eventually(
        () => thread.storage.getAlarm(),
        (alarm) => alarm !== null,
      );
      expect(at! - tomorrow()).toBeLessThanOrEqual(RETRY_MS_MAX);
      expect(faults).toContain("thread object fault");
      expect(await eventsInD1(thread.threadId)).toEqual([]);
      isDown = false;
      // The alarm comes when the next try is due: an earlier one leaves D1 alone.
      later = RETRY_MS_MAX;
      await runtime.onAlarm();
      await eventually(
        () => eventsInD1(thread.threadId),
        (types) => types.at(-1) === "run.end",
      );
    });
  });
});

/** A stored run that nobody drives: a call of its first wake never ends, and the second has not recovered it. */
async function withUndriven(thread: ThreadWakes, { stored }: { stored: boolean }) {
  let calls = 0;
  const tool = plainTool("probe", async () => {
    calls += 1;
    if (calls === 1) await new Promise(() => undefined);
    return succeeded("answered");
  });
  const first = await thread.create({ tools: [tool] });
  const { runId } = await startRun(first, "@ call probe {}\n@ say done");
  await eventually(
    () => calls,
    (count) => count === 1,
  );
  if (stored) first.context.live.get(runId)!.frames.flush();
  const { context, streams, recovery } = thread.sleeping({ tools: [tool] });
  const run = () => context.runs.find(runId)!;
  const reader = streams
    .stream(run(), { afterId: 0, modes: ["custom"], namespaces: [], cancelOnDisconnect: false })
    .body!.getReader();
  const read = async (): Promise<string> => new TextDecoder().decode((await reader.read()).value);
  return { context, recovery, streams, run, read };
}

it("P5: a join that came while nobody drove its run gets the values it ends with, not those it was left with", async () => {
  await withWakes(async (thread) => {
    const { recovery, streams, run } = await withUndriven(thread, { stored: true });
    const values = streams.join(run(), { cancelOnDisconnect: false }).text();
    await Promise.resolve();
    await recovery.recover();
    const { messages } = JSON.parse(await values) as { messages: { content: string }[] };
    expect(messages.at(-1)!.content).toBe("done");
  });
});

describe("a reader that came while nobody drove its run", () => {
  it("gets recovery's frames as they come, not a heartbeat (P8)", async () => {
    await withWakes(async (thread) => {
      const { recovery, read } = await withUndriven(thread, { stored: true });
      expect(await read()).toContain('"attempt":1');
      const next = read();
      await recovery.recover();
      expect(await next).toContain('"attempt":2');
    });
  });

  it("is told the end as soon as recovery finds the run cancelled", async () => {
    await withWakes(async (thread) => {
      const { context, recovery, run, read } = await withUndriven(thread, { stored: true });
      context.runs.save({ ...run(), cancelRequested: true });
      expect(await read()).toContain('"attempt":1');
      const next = read();
      await recovery.recover();
      expect(run().status).toBe("interrupted");
      expect(await next).toBe("");
    });
  });

  it("is not told that frames expired when the run died before it stored one: it waits for recovery's", async () => {
    await withWakes(async (thread) => {
      const { recovery, read } = await withUndriven(thread, { stored: false });
      const next = read();
      await Promise.resolve();
      await recovery.recover();
      expect(await next).toContain('"attempt":2');
    });
  });
});
