/** An owner's data as a whole, with an owner of each test's own: exported, and erased until nothing is left. */
import { Buffer } from "node:buffer";
import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { createGateway } from "../../../src/gateway/app.ts";
import { eraseOwner } from "../../../src/gateway/owner-erasure.ts";
import { ownerExport } from "../../../src/gateway/owner-export.ts";
import { D1OwnerRows } from "../../../src/platform/d1/owner-rows.ts";
import { DurableThreadDirectory } from "../../../src/platform/thread-directory.ts";
import { tablesOf } from "../../support/endpoint-world.ts";
import { eventually } from "../../support/eventually.ts";
import { gatewayDeps } from "../../support/gateway.ts";
import { asking } from "../../support/http.ts";
import { ownerRows } from "../../support/owned-rows.ts";

interface Line {
  readonly type: string;
  readonly [field: string]: unknown;
}

class OwnerWorld {
  readonly owner = `owner-${crypto.randomUUID()}`;
  readonly principal = { owner: this.owner, role: "user" } as const;
  readonly deps = gatewayDeps({
    auth: { apiKeys: JSON.stringify({ [this.owner]: this.principal }), devOwner: undefined },
    threads: new DurableThreadDirectory(env.THREADS),
    newId: () => crypto.randomUUID(),
  });
  readonly #gateway = createGateway(this.deps);

  async send(method: string, path: string, body?: unknown): Promise<Response> {
    const raw = body instanceof Uint8Array || body === undefined;
    const response = await this.#gateway.fetch(
      new Request(`http://gateway.test${path}`, {
        method,
        headers: { "x-api-key": this.owner, ...(raw ? {} : { "content-type": "application/json" }) },
        ...(body === undefined ? {} : { body: raw ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body) }),
      }),
    );
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response;
  }

  /** Which has run once. */
  async thread(content: string): Promise<string> {
    const { thread_id: id } = await (await this.send("POST", "/threads", {})).json<{ thread_id: string }>();
    await (await this.send("POST", `/threads/${id}/runs/wait`, asking(content))).text();
    // Whoever reads the log flushes it.
    await (await this.send("GET", `/threads/${id}/messages`)).text();
    return id;
  }

  async lines(path: string): Promise<Line[]> {
    return parse(await (await this.send("GET", path)).text());
  }
}

const parse = (text: string): Line[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);

it("a thread's export holds its runs, events, states and files, and an end that counts them", async () => {
  const world = new OwnerWorld();
  const id = await world.thread("@ say one");
  await (await world.send("POST", `/threads/${id}/runs/wait`, asking("@ say two"))).text();
  const large = Uint8Array.from({ length: 800_000 }, (_, place) => place % 251);
  await world.send("PUT", `/threads/${id}/files/a/large.bin`, large);
  const batch = { title: "One", subagent_type: "general-purpose", items: [{ key: "a", prompt: "@ say a" }] };
  const { batch_id: batchId } = await (
    await world.send("POST", `/threads/${id}/batches`, batch)
  ).json<{ batch_id: string }>();
  const get = async (path: string) => (await world.send("GET", path)).json<unknown>();
  await eventually(
    () => get(`/batches/${batchId}`),
    (view) => (view as { status: string }).status === "completed",
  );
  const lines = await world.lines(`/threads/${id}/export`);
  const of = (type: string) => lines.filter((line) => line.type === type);
  expect(lines[0]).toMatchObject({ type: "thread", v: 1, thread: { thread_id: id } });
  const runs = await (await world.send("GET", `/threads/${id}/runs`)).json<{ run_id: string }[]>();
  expect(of("run").map(({ run }) => (run as { run_id: string }).run_id)).toEqual(runs.map(({ run_id }) => run_id));
  const seqs = of("event").map(({ event }) => (event as { seq: number }).seq);
  expect(seqs).toEqual(seqs.map((_, place) => place + 1));
  const history = await (await world.send("GET", `/threads/${id}/history?limit=100`)).json<unknown[]>();
  expect(of("state").map(({ state }) => state)).toEqual(history);
  const [file] = of("file");
  expect(file).toMatchObject({ path: "/workspace/a/large.bin", size: 800_000, parts: 2 });
  const contents = [file!, ...of("file_part")].map(({ content }) => Buffer.from(content as string, "base64"));
  expect(Buffer.concat(contents).equals(Buffer.from(large))).toBe(true);
  expect(of("batch").map((line) => line["batch"])).toEqual([await get(`/batches/${batchId}`)]);
  const results = (await (await world.send("GET", `/batches/${batchId}/results.jsonl`)).text()).trimEnd().split("\n");
  expect(of("batch_result")).toEqual(
    results.map((line) => ({ type: "batch_result", batch_id: batchId, result: JSON.parse(line) as unknown })),
  );
  expect(lines.at(-1)).toEqual({
    type: "end",
    thread_id: id,
    counts: { run: 2, event: seqs.length, state: history.length, directory: 1, file: 1, batch: 1, batch_result: 1 },
  });
});

it("an export whose thread is deleted meanwhile has no end", async () => {
  const world = new OwnerWorld();
  const id = await world.thread("@ say one");
  const reader = (await world.send("GET", `/threads/${id}/export`)).body!.getReader();
  let text = new TextDecoder().decode((await reader.read()).value);
  await world.send("DELETE", `/threads/${id}`);
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      text += new TextDecoder().decode(next.value);
    }
  } catch {
    // A cut may also be seen as one.
  }
  expect(text).toContain('"type":"thread"');
  expect(text).not.toContain('"type":"end"');
});

it("an owner's export goes on where a bounded one stopped, and holds nothing of others", async () => {
  const world = new OwnerWorld();
  const other = new OwnerWorld();
  await other.thread("@ say secret");
  const ids: string[] = [];
  for (let made = 0; made < 3; made += 1) ids.push(await world.thread(`@ say word-${made}`));
  ids.sort();
  await world.send("POST", "/assistants", { graph_id: "lead_agent", assistant_id: "mine", name: "Mine" });
  const exported = async (after: string) =>
    parse(await new Response(ownerExport(world.deps, world.principal, { after, threadsMax: 2 })).text());
  const one = await exported("");
  const ends = (lines: Line[]) => lines.filter(({ type }) => type === "end").map((line) => line["thread_id"]);
  expect(ends(one)).toEqual(ids.slice(0, 2));
  expect(one.at(-1)).toEqual({ type: "owner_end", counts: { assistants: 1, threads: 2 }, cut: [], next: ids[1] });
  const rest = await exported(ids[1]!);
  expect(ends(rest)).toEqual(ids.slice(2));
  expect(rest.at(-1)).toEqual({ type: "owner_end", counts: { assistants: 0, threads: 1 }, cut: [], next: null });
  const whole = await world.lines("/owner/export");
  expect(ends(whole)).toEqual(ids);
  expect(whole.find(({ type }) => type === "assistant")).toMatchObject({ assistant: { assistantId: "mine" } });
  expect(JSON.stringify(whole)).not.toContain("secret");
});

it("an owner is erased request by request until no row of D1 and no object knows of them; others stay", async () => {
  const world = new OwnerWorld();
  const other = new OwnerWorld();
  const kept = await other.thread("@ say kept");
  const ids: string[] = [];
  for (let made = 0; made < 3; made += 1) ids.push(await world.thread(`@ say word-${made}`));
  await (await world.send("POST", "/runs/wait", asking("@ say stateless"))).text();
  const items = [{ key: "a", prompt: "@ say a" }];
  const batch = { title: "One", subagent_type: "general-purpose", items };
  const { batch_id: batchId } = await (
    await world.send("POST", `/threads/${ids[0]}/batches`, batch)
  ).json<{ batch_id: string }>();
  await world.send("POST", "/assistants", { graph_id: "lead_agent", assistant_id: "mine", name: "Mine" });
  await expect(world.send("DELETE", "/owner")).rejects.toThrow("422");
  // Rows that a thread left whose object is gone.
  const stray = env.DB.prepare(
    "INSERT INTO run_events SELECT ?1, 'stray', 1, 'r', 't', 'c', '{}', '{}', '2026-01-01T00:00:00.000Z'",
  );
  await stray.bind(world.owner).run();
  const ports = { threads: world.deps.threads, owners: new D1OwnerRows(env.DB), now: Date.now };
  const first = await eraseOwner(ports, world.principal, 2);
  expect(first).toMatchObject({
    ok: true,
    value: { done: false, erased: { threads: 2, assistants: 1 }, left: { threads: 2 } },
  });
  const answer = await world.send("DELETE", "/owner?confirm=erase");
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({ done: true, erased: { threads: 3, assistants: 0 }, left: { threads: 0 } });
  // What keeps late writes out stays a day.
  const { thread_fences: fences, ...left } = await ownerRows(world.owner, [batchId]);
  expect([left, fences]).toEqual([{}, 4]);
  const open = env.DB.prepare("SELECT count(*) AS n FROM thread_fences WHERE owner = ? AND deleted_at IS NULL");
  expect(await open.bind(world.owner).first("n")).toBe(0);
  for (const id of ids) expect(await tablesOf(world.owner, id)).toEqual([]);
  expect((await other.send("GET", `/threads/${kept}`)).status).toBe(200);
});
