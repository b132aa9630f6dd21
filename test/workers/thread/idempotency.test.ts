/** `Idempotency-Key` on creates of runs: one execution for the same key and body (docs/decisions/idempotency.md). */
import { describe, expect, it } from "vitest";
import { IDEMPOTENCY_TTL_MS } from "../../../src/durable-objects/idempotent-creates.ts";
import { createRunBodySchema, type Run } from "../../../src/protocol/runs.ts";
import type { RunCommand } from "../../../src/protocol/thread-rpc.ts";
import { ALICE, asking, BOB, newThread, parseFrames, send, sendJson } from "../../support/http.ts";
import { tomorrow, withWakes } from "../../support/thread-wakes.ts";

const ROUTES = ["", "/stream", "/wait"] as const;
const keyed = (key: string, headers = ALICE) => ({ ...headers, "idempotency-key": key });
const newKey = () => `key-${crypto.randomUUID()}`;

interface Started {
  readonly status: number;
  readonly text: string;
  /** `/threads/{t}/runs/{r}` */
  readonly location: string | null;
}

async function start(path: string, body: unknown, headers: Record<string, string>): Promise<Started> {
  const answer = await send("POST", path, body, headers);
  return { status: answer.status, text: await answer.text(), location: answer.headers.get("content-location") };
}

const codeOf = ({ status, text }: Started) => [status, (JSON.parse(text) as { code: string }).code];

describe("the same key and body", () => {
  it("are the same run on the three routes of a thread, executed once, and each answers as it always does", async () => {
    const threadId = await newThread();
    const key = newKey();
    const answers: Started[] = [];
    for (const route of [...ROUTES, ...ROUTES]) {
      answers.push(await start(`/threads/${threadId}/runs${route}`, asking("@ say once"), keyed(key)));
    }
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
    expect(new Set(answers.map(({ location }) => location)).size).toBe(1);
    expect(await sendJson("GET", `/threads/${threadId}/runs`)).toHaveLength(1);
    const [, streamed, waited] = answers;
    expect(parseFrames(streamed!.text).map(({ event }) => event)).toContain("values");
    const texts = (JSON.parse(waited!.text) as { messages: { content: string }[] }).messages.map((one) => one.content);
    expect(texts).toEqual(["@ say once", "once"]);
    const events = await sendJson<{ event_type: string }[]>("GET", `${answers[0]!.location}/events`);
    expect(events.filter(({ event_type: type }) => type === "run.start")).toHaveLength(1);
  });

  it("are the same run on the three stateless routes, on one thread", async () => {
    const key = newKey();
    const answers: Started[] = [];
    for (const route of [...ROUTES, ...ROUTES]) {
      answers.push(await start(`/runs${route}`, asking("@ say once"), keyed(key)));
    }
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
    const locations = new Set(answers.map(({ location }) => location));
    expect(locations.size).toBe(1);
    const thread = [...locations][0]!.replace(/\/runs\/.*/, "");
    expect(await sendJson("GET", `${thread}/runs`)).toHaveLength(1);
  });

  it.each(["a thread", "no thread"])(
    "sent at once, twelve times, to %s, are one run and nobody is refused",
    async (of) => {
      const base = of === "a thread" ? `/threads/${await newThread()}/runs` : "/runs";
      const key = newKey();
      const sent = Array.from({ length: 12 }, (_, index) =>
        start(`${base}${ROUTES[index % 3]}`, asking("@ say once"), keyed(key)),
      );
      const answers = await Promise.all(sent);
      expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200));
      const locations = new Set(answers.map(({ location }) => location));
      expect(locations.size).toBe(1);
      expect(await sendJson("GET", [...locations][0]!.replace(/\/[^/]*$/, ""))).toHaveLength(1);
    },
  );

  it("are the same whatever the order of fields is, and with nulls left out", async () => {
    const path = `/threads/${await newThread()}/runs/wait`;
    const key = newKey();
    const first = await start(path, { ...asking("@ say one"), metadata: { a: 1, b: 2 }, context: null }, keyed(key));
    const again = await start(path, { metadata: { b: 2, a: 1 }, ...asking("@ say one") }, keyed(key));
    expect(again).toMatchObject({ status: 200, location: first.location });
  });
});

describe("a run that waits its turn", () => {
  it("is the run of its key too: a repeat is answered, not refused or queued again", async () => {
    const threadId = await newThread();
    const path = `/threads/${threadId}/runs`;
    const slow = await start(path, asking('@ call bash {"command": "sleep 9"}\n@ say slow'), ALICE);
    const key = newKey();
    const body = asking("@ say next", { multitask_strategy: "enqueue" });
    const queued = await Promise.all([1, 2, 3].map(() => start(path, body, keyed(key))));
    expect(queued.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(queued.map(({ location }) => location)).size).toBe(1);
    expect(JSON.parse(queued[2]!.text)).toMatchObject({ status: "pending" });
    expect(await sendJson("GET", path)).toHaveLength(2);
    await send("POST", `${slow.location}/cancel`);
    const waited = await start(`${path}/wait`, body, keyed(key));
    expect(waited.location).toBe(queued[0]!.location);
    expect(await sendJson("GET", path)).toHaveLength(2);
  });
});

describe("a key", () => {
  it("with another body is a conflict that names the run, on every route alike", async () => {
    for (const base of [`/threads/${await newThread()}/runs`, "/runs"]) {
      const key = newKey();
      const first = await start(`${base}/wait`, asking("@ say one"), keyed(key));
      for (const route of ROUTES) {
        const other = await start(`${base}${route}`, asking("@ say two"), keyed(key));
        expect(codeOf(other)).toEqual([409, "idempotency_conflict"]);
        const { details } = JSON.parse(other.text) as { details: { run_id: string } };
        expect(first.location).toContain(details.run_id);
      }
    }
  });

  it("is its thread's and its owner's: elsewhere it starts another run", async () => {
    const key = newKey();
    const body = asking("@ say mine");
    const first = await start(`/threads/${await newThread()}/runs/wait`, body, keyed(key));
    const second = await start(`/threads/${await newThread()}/runs/wait`, body, keyed(key));
    const stateless = await start("/runs/wait", body, keyed(key));
    const bobs = await start("/runs/wait", body, keyed(key, BOB));
    const all = [first, second, stateless, bobs];
    expect(all.map(({ status }) => status)).toEqual(Array(4).fill(200));
    expect(new Set(all.map(({ location }) => location)).size).toBe(4);
    const thread = stateless.location!.replace(/\/runs\/.*/, "");
    expect((await send("GET", thread, undefined, BOB)).status).toBe(404);
  });

  it("is not used up by a create that was refused", async () => {
    const threadId = await newThread();
    const key = newKey();
    const refused = { ...asking("x"), input: { messages: [{ type: "remove", id: "nowhere" }] } };
    for (const path of [`/threads/${threadId}/runs/wait`, "/runs/wait"]) {
      expect((await start(path, refused, keyed(key))).status).toBe(422);
      expect((await start(path, asking("@ say now"), keyed(key))).status).toBe(200);
    }
    const missing = `/threads/${crypto.randomUUID()}/runs/wait`;
    expect((await start(missing, asking("@ say now"), keyed(key))).status).toBe(404);
    expect((await start(missing, asking("@ say now", { if_not_exists: "create" }), keyed(key))).status).toBe(200);
  });

  it("whose run was removed is a conflict: it was executed, and is not again", async () => {
    const path = `/threads/${await newThread()}/runs/wait`;
    const key = newKey();
    const first = await start(path, asking("@ say one"), keyed(key));
    expect((await send("DELETE", first.location!)).status).toBe(204);
    expect(codeOf(await start(path, asking("@ say one"), keyed(key)))).toEqual([409, "idempotency_conflict"]);
  });

  it.each(["with space", "", "x".repeat(256)])("spelled %j is refused before anything is asked", async (key) => {
    const headers = keyed(key);
    for (const path of [`/threads/${crypto.randomUUID()}/runs`, "/runs"]) {
      expect(codeOf(await start(path, asking("x"), headers))).toEqual([422, "invalid_request"]);
    }
  });
});

describe("across wakes of the object", () => {
  const command = (key: string, content = "@ say once"): RunCommand => ({
    graph_id: "lead_agent",
    body: createRunBodySchema.parse(asking(content)),
    idempotency: { key, body_hash: content },
  });

  it("a key stands for its run after a restart, for a day, and is free again then; no key, no row", async () => {
    await withWakes(async (thread) => {
      let now = tomorrow();
      const clock = () => now;
      const rows = () => thread.storage.sql.exec("SELECT * FROM idempotency_keys").toArray().length;
      const first = await thread.create({ now: clock });
      const unkeyed = await first.runs.create({ ...command("none"), idempotency: undefined } as unknown as RunCommand);
      await first.context.live.get((unkeyed as { value: { runId: string } }).value.runId)?.done;
      expect(rows()).toBe(0);
      const created = await first.runs.create(command("k"));
      if (!created.ok) throw new Error(created.error.message);
      await first.context.live.get(created.value.runId)?.done;
      expect(rows()).toBe(1);

      now += IDEMPOTENCY_TTL_MS - 60_000;
      const second = await thread.wake({ now: clock });
      const again = await second.runs.create(command("k"));
      expect(again).toMatchObject({ ok: true, value: { runId: created.value.runId, status: "success" } });
      expect(await second.runs.create(command("k", "@ say other"))).toMatchObject({
        ok: false,
        error: { code: "idempotency_conflict" },
      });

      now += 120_000;
      const later = await second.runs.create(command("k"));
      if (!later.ok) throw new Error(later.error.message);
      expect(later.value.runId).not.toBe(created.value.runId);
      expect(rows()).toBe(1);
      await second.context.live.get(later.value.runId)?.done;
      const runs: Pick<Run, "status">[] = second.runs.list({ limit: 10, offset: 0 });
      expect(runs.map(({ status }) => status)).toEqual(["success", "success", "success"]);
    });
  });
});
