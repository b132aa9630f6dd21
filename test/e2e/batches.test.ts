import { afterAll, beforeAll, expect, it } from "vitest";
import { DeputyServer, eventually } from "../support/deputy-server.ts";

interface BatchBody {
  readonly batch_id: string;
  readonly status: string;
  readonly total_items: number;
  readonly counts: Record<string, number>;
}

interface Line {
  readonly key: string;
  readonly status: string;
  readonly result: string | null;
  readonly attempts: number;
  readonly deferrals: number;
}

const deputy = new DeputyServer({
  env: {
    DEPUTY_OVERRIDES: JSON.stringify({
      subagent_runtime: { max_running: 20 },
      subagent_batches: { lease_seconds: 4 },
      runtime: { keep_alive_seconds: 1 },
    }),
  },
});

beforeAll(() => deputy.start());
afterAll(() => deputy.close());

async function submit(
  items: { key: string; prompt: string }[],
  options: Record<string, unknown> = {},
): Promise<BatchBody> {
  const { thread_id } = await deputy.json<{ thread_id: string }>("POST", "/threads", {});
  const body = { title: "numbers", subagent_type: "general-purpose", items, ...options };
  return deputy.json<BatchBody>("POST", `/threads/${thread_id}/batches`, body);
}

async function exported(batchId: string): Promise<Line[]> {
  const text = await (await fetch(`${deputy.url}/batches/${batchId}/results.jsonl`)).text();
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}

const settled = (batch: BatchBody) => batch.status === "completed";

it("2,000 items go through the queue and D1, each with its own answer (R54, R205)", async () => {
  const items = Array.from({ length: 2_000 }, (_, index) => ({
    key: `item-${index}`,
    prompt: `@ say answer ${index}`,
  }));
  const created = await submit(items, { max_running_items: 20 });
  expect(created).toMatchObject({ status: "running", total_items: 2_000 });
  const batch = await eventually(() => deputy.json<BatchBody>("GET", `/batches/${created.batch_id}`), settled, 100_000);
  expect(batch.counts).toEqual({ pending: 0, leased: 0, completed: 2_000, failed: 0, cancelled: 0 });
  const lines = await exported(created.batch_id);
  expect(lines.map((line) => line.result)).toEqual(items.map((_, index) => `answer ${index}`));
  expect(new Set(lines.map((line) => line.attempts))).toEqual(new Set([0]));
});

it("SIGKILL in the middle of a batch: every item ends exactly once, without a request after the restart (P1, B6)", async () => {
  const items = Array.from({ length: 60 }, (_, index) => ({
    key: `k${index}`,
    prompt: `@ delay 60\n@ say value ${index} a b c d`,
  }));
  const created = await submit(items, { max_running_items: 3 });
  await eventually(
    () => deputy.query<{ n: number }>("SELECT count(*) AS n FROM batch_items WHERE status = 'completed'")[0]!.n,
    (done) => done >= 2_006,
    30_000,
  );
  await deputy.kill();
  await deputy.start();
  await eventually(
    () =>
      deputy.query<{ status: string }>(`SELECT status FROM batches WHERE batch_id = '${created.batch_id}'`)[0]!.status,
    (status) => status === "completed",
    90_000,
  );
  const lines = await exported(created.batch_id);
  expect(lines.map((line) => [line.key, line.status, line.result])).toEqual(
    items.map((item, index) => [item.key, "completed", `value ${index} a b c d`]),
  );
});

it("a violation names the item and the limit and stores nothing", async () => {
  const { thread_id } = await deputy.json<{ thread_id: string }>("POST", "/threads", {});
  const before = deputy.query<{ n: number }>("SELECT count(*) AS n FROM batches")[0]!.n;
  const items = [
    { key: "same", prompt: "a" },
    { key: "same", prompt: "b" },
  ];
  const response = await fetch(`${deputy.url}/threads/${thread_id}/batches`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ title: "t", subagent_type: "general-purpose", items }),
  });
  expect(response.status).toBe(422);
  expect((await response.json<{ message: string }>()).message).toContain("items[1].key");
  expect(deputy.query<{ n: number }>("SELECT count(*) AS n FROM batches")[0]!.n).toBe(before);
});
