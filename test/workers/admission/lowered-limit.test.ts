/** A deploy that lowers `max_running` (architecture section 6): what was granted before it drains, nothing is added past it. */
import { expect, it } from "vitest";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

const limited = (max_running: number) => ({ subagent_runtime: { max_running } });

const delegate = (at: number) =>
  `@ & delegate general-purpose :: child ${at} :: <<'CHILD'\n@ call probe {}\n@ say ${at}\nCHILD`;
const SCRIPT = [...[1, 2, 3, 4].map(delegate), "@ say done"].join("\n");

/** Counts the children that are inside their tool; each leaves when the test says so. */
function counting() {
  const seen = { inside: 0, most: 0 };
  const waiting: (() => void)[] = [];
  const tool = plainTool("probe", async () => {
    seen.inside += 1;
    seen.most = Math.max(seen.most, seen.inside);
    await new Promise<void>((resolve) => waiting.push(resolve));
    seen.inside -= 1;
    return succeeded("seen");
  });
  return { seen, tool, letOneGo: () => waiting.shift()?.() };
}

const inside = (seen: { inside: number }, count: number) =>
  eventually(
    () => seen.inside,
    (now) => now === count,
  );

it("P1 grants of consumers and children of a run that goes on drain; no grant exceeds the new value", async () => {
  await withWakes(async (thread) => {
    const before = counting();
    const first = await thread.create({ tools: [before.tool], config: limited(6) });
    const grant = first.context.admission.grantBatch("batch", 2)!;
    const { runId } = await startRun(first, SCRIPT, { config: { configurable: { max_concurrent_subagents: 4 } } });
    await inside(before.seen, 4);
    expect(first.context.admission.snapshot()).toMatchObject({ max_running: 6, running: 6 });

    const after = counting();
    const second = await thread.wake({ tools: [after.tool], config: limited(2) });
    const { admission, live } = second.context;
    const { done } = live.get(runId)!;
    // The consumer holds both slots there are: no child of the run that goes on may start.
    await eventually(
      () => admission.snapshot().queued,
      (queued) => queued === 4,
    );
    expect(admission.snapshot()).toMatchObject({ max_running: 2, running: 2 });
    expect(admission.grantBatch("another", 1)).toBeUndefined();
    admission.withdrawBatch("another");
    expect(after.seen.most).toBe(0);

    admission.returnGrant(grant.grantId);
    await inside(after.seen, 2);
    for (const left of [2, 2, 1, 0]) {
      after.letOneGo();
      await eventually(
        () => admission.snapshot().running,
        (running) => running === left,
      );
      await inside(after.seen, left);
    }
    await done;
    expect(second.context.runs.find(runId)!.status).toBe("success");
    expect(after.seen.most).toBe(2);
    expect(admission.snapshot()).toMatchObject({ running: 0, queued: 0 });
  });
});
