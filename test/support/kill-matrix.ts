/**
 * Parks a thread in every cell of the kill matrix, and checks what became of each after the kill. Owns neither the kill
 * nor the server: the e2e half has `wrangler dev`, the workers half the objects of its own workerd.
 */
import { expect } from "vitest";
import { eventually } from "./eventually.ts";
import { type StreamFrame, StreamReader } from "./event-stream.ts";
import type { FailpointHolds } from "./failpoint-holds.ts";
import { bashCall, type CellExpectation, type Kill, type KillCell, modelPoint, plugOf } from "./kill-cells.ts";

export interface KillHost {
  readonly kill: Kill;
  readonly holds: FailpointHolds;
  /** Lets one thread go on. */
  release(threadId: string): void;
  fetch(
    method: string,
    path: string,
    options?: { body?: unknown; headers?: Record<string, string> },
  ): Promise<Response>;
  /** Rows of D1, without asking any thread. */
  d1<T>(sql: string): Promise<T[]> | T[];
  /** Answers of this thread that stopped in the middle, where the host can see them. */
  readonly stalled?: (threadId: string) => number;
}

/** CI may be three times slower than here, and several helpers may share its cores. */
const PATIENCE_MS = 90_000;

interface EventRow {
  readonly seq: number;
  readonly event_type: string;
  readonly run_id: string;
}

/** Of `wrangler.toml`: what one delivery of the queue takes. */
const DELIVERY_MAX = 10;

/**
 * Parks every cell. The local queue makes one delivery at a time, and one whose items are held never ends: all wakes have
 * to be in the same. So the first delivery is held by an item of its own until they all lie in the queue behind it.
 */
export async function parkAll(host: KillHost, cells: readonly KillCell[]): Promise<ParkedCell[]> {
  expect(cells.filter((cell) => cell.work("").items !== undefined).length).toBeLessThanOrEqual(DELIVERY_MAX);
  const plug = new ParkedCell(host, plugOf(host.kill));
  await plug.submit();
  await plug.park();
  const parked = cells.map((cell) => new ParkedCell(host, cell));
  await Promise.all(parked.map((one) => one.submit()));
  host.release(plug.threadId);
  await Promise.all(parked.map((one) => one.park()));
  return parked;
}

export class ParkedCell {
  readonly cell: KillCell;
  readonly threadId = crypto.randomUUID();
  readonly #host: KillHost;
  readonly #expected: CellExpectation;
  #reader: StreamReader | undefined;
  #batchId: string | undefined;

  constructor(host: KillHost, cell: KillCell) {
    this.#host = host;
    this.cell = cell;
    this.#expected = cell.expect(host.kill);
  }

  /** Makes the thread and submits its batch: a run beside it finds its items at work. */
  async submit(): Promise<void> {
    const { holds } = this.cell;
    for (const hold of holds) this.#host.holds.hold({ ...hold, threadId: this.threadId });
    await this.#json("POST", "/threads", { thread_id: this.threadId });
    const { items } = this.cell.work(this.threadId);
    if (items === undefined) return;
    const body = {
      title: this.cell.point,
      subagent_type: "general-purpose",
      items: items.map((prompt, place) => ({ key: `k${place}`, prompt })),
    };
    const created = await this.#json<{ batch_id: string }>("POST", `/threads/${this.threadId}/batches`, body);
    this.#batchId = created.batch_id;
  }

  /** Resolves once every hold of the cell holds somebody: the point was hit. */
  async park(): Promise<void> {
    try {
      await this.#park();
    } catch (cause) {
      const reached = this.#host.holds.reached(this.threadId).map((each) => each.slice(0, 80));
      throw new Error(`${this.cell.point}, ${this.cell.subject}: not parked; reached ${reached.join(", ")}`, { cause });
    }
  }

  async #park(): Promise<void> {
    const { provoke, provoked } = this.cell;
    if (this.#batchId !== undefined) await this.#isHeld();
    this.#start();
    await this.#isHeld();
    await this.#showsEvidence();
    if (provoked !== undefined) this.#host.holds.hold({ ...provoked, threadId: this.threadId });
    if (provoke !== undefined) await this.#provoke(provoke);
    await this.#isHeld();
  }

  /** What must be true behind the kill while consumers that live on are still held. */
  async checkHeld(): Promise<void> {
    const { whileHeld } = this.#expected;
    if (whileHeld === undefined) return;
    const items = await this.#host.d1<{ status: string; lease_token: string | null }>(
      `SELECT status, lease_token FROM batch_items WHERE batch_id = '${this.#batchId}'`,
    );
    expect(items).toEqual(items.map(() => ({ status: "cancelled", lease_token: null })));
    expect(this.#host.holds.count(this.threadId, modelPoint(this.#host.kill))).toBe(whileHeld.requests);
    expect(this.#host.holds.count(this.threadId, "tool_started")).toBe(0);
  }

  /** Everything that must be true once nothing is held any more. */
  async check(): Promise<void> {
    // Objects that were aborted alone are woken as a client does; a restart has to wake them by itself.
    if (this.#host.kill === "abort") await this.#runs();
    if (this.#batchId !== undefined) await this.#checkBatch(this.#batchId);
    if (this.#reader !== undefined) await this.#checkRuns(this.#reader);
    await this.#checkFollowUp();
    await this.#checkLog();
  }

  #start(): void {
    const { script } = this.cell.work(this.threadId);
    if (script === undefined) return;
    const body = { ...asking(script), ...this.cell.options };
    this.#reader = new StreamReader(this.#host.fetch("POST", `/threads/${this.threadId}/runs/stream`, { body }));
  }

  async #isHeld(): Promise<void> {
    await this.#eventually(
      () => this.#host.holds.waiting(this.threadId),
      (waiting) => waiting.length === 0,
    );
  }

  async #showsEvidence(): Promise<void> {
    const { cell, threadId } = this;
    const { kill, holds, stalled } = this.#host;
    if (cell.evidence === "partial text") {
      await this.#eventually(
        () => holds.count(threadId, modelPoint(kill)),
        (asked) => asked === (cell.subject === "child" ? 2 : 1),
      );
      if (stalled !== undefined)
        await this.#eventually(
          () => stalled(threadId),
          (count) => count === 1,
        );
      if (cell.subject === "lead run") {
        await this.#eventually(
          () => this.#reader!.frames().map((frame) => frame.event),
          (events) => events.includes("messages"),
        );
      }
      expect(holds.count(threadId, "model_answered")).toBe(cell.subject === "child" ? 1 : 0);
    }
    if (cell.evidence === "one result") {
      if (cell.subject === "batch item")
        await this.#eventually(() => holds.count(threadId, "tool_finished", bashCall("fa")), isOne);
      else {
        const results = cell.subject === "lead run" ? ["llm.tool.result"] : ["subagent.step", "subagent.step"];
        await this.#eventually(
          () => this.#events(),
          (events) => hasAll(events, results),
        );
      }
      expect(holds.count(threadId, "tool_finished")).toBe(1);
    }
    if (cell.evidence === "one queued") {
      await this.#eventually(
        () => holds.count(threadId, "model_answered", "general-purpose"),
        (answered) => answered === 3,
      );
      if (cell.subject === "child") {
        await this.#eventually(
          () => this.#reader!.frames().filter((frame) => frame.data.includes("task_started")),
          (told) => told.length > 0,
        );
      }
    }
    if (cell.evidence === "first frame")
      await this.#eventually(
        () => this.#reader!.frames(),
        (frames) => frames.length > 0,
      );
    if (cell.evidence === "waiting")
      await this.#eventually(
        () => this.#statuses(),
        (all) => all.join() === "interrupted",
      );
  }

  async #provoke(what: NonNullable<KillCell["provoke"]>): Promise<void> {
    if (what === "enqueue") {
      const work = this.cell.work(this.threadId);
      const body = { ...asking(work.script ?? ""), multitask_strategy: "enqueue" };
      await this.#json("POST", `/threads/${this.threadId}/runs`, body);
      expect(await this.#statuses()).toEqual(["pending", "running"]);
      return;
    }
    if (this.#batchId !== undefined) {
      // Held before it answers.
      this.#host.fetch("POST", `/batches/${this.#batchId}/cancel`).catch(() => undefined);
      return;
    }
    const [run] = await this.#runs();
    if (what === "read the log") {
      // Held as well: a reader of the log flushes first.
      this.#host.fetch("GET", `/threads/${this.threadId}/runs/${run!.run_id}/events`).catch(() => undefined);
      return;
    }
    await this.#json(
      "POST",
      `/threads/${this.threadId}/runs/${run!.run_id}/cancel?action=${what === "rollback" ? "rollback" : "interrupt"}`,
    );
  }

  async #checkRuns(reader: StreamReader): Promise<void> {
    const { threadId } = this;
    const { status, endedBefore = false } = this.#expected;
    const wanted = status === "gone" ? [] : this.cell.provoke === "enqueue" ? [status, status] : [status];
    await this.#eventually(
      () => this.#host.d1<{ status: string }>(`SELECT status FROM runs WHERE thread_id = '${threadId}'`),
      (rows) => rows.map((row) => row.status).join() === wanted.join(),
    );
    expect(await this.#statuses()).toEqual(wanted);
    if (this.cell.answer !== undefined) {
      await (await this.#host.fetch("POST", `/threads/${threadId}/runs/wait`, { body: this.cell.answer })).text();
    }
    await this.#checkWork();
    if (status === "gone") {
      expect(await this.#events()).toEqual([]);
      return;
    }
    const runs = (await this.#runs()).toReversed();
    const events = await this.#events();
    for (const run of runs) {
      const types = events.filter((event) => event.run_id === run.run_id).map((event) => event.event_type);
      expect(types.filter((type) => type === "run.start")).toHaveLength(1);
      expect(types.filter((type) => type === "run.end")).toHaveLength(1);
      expect(types.at(-1)).toBe("run.end");
    }
    const recovered = events.filter((event) => event.event_type === "run.recovered");
    expect(recovered).toHaveLength(endedBefore || status === "interrupted" ? 0 : 1);
    expect(countOf(events, "subagent.start")).toBe(countOf(events, "subagent.end"));
    const { values } = await this.#json<{ values: { delegations?: { status: string }[] } }>(
      "GET",
      `/threads/${threadId}/state`,
    );
    const settled = status === "interrupted" ? "cancelled" : "completed";
    for (const delegation of values.delegations ?? []) expect(delegation.status).toBe(settled);
    await this.#checkStreams(reader, runs[0]!.run_id);
  }

  /** The reader from before the kill goes on where it stopped, and a fresh one gets the identical list. */
  async #checkStreams(reader: StreamReader, runId: string): Promise<void> {
    await reader.ended;
    const before = reader.frames();
    const path = `/threads/${this.threadId}/runs/${runId}/stream`;
    const replay = async (lastId: number) => {
      const again = new StreamReader(this.#host.fetch("GET", path, { headers: { "last-event-id": String(lastId) } }));
      await again.ended;
      return again.frames();
    };
    const lastId = before.at(-1)?.id ?? -1;
    const [whole, rest] = [await replay(-1), await replay(lastId)];
    expect(rest).toEqual(whole.filter((frame) => frame.id > lastId));
    const known = new Map(before.map((frame) => [frame.id, frame]));
    for (const frame of whole) if (known.has(frame.id)) expect(frame).toEqual(known.get(frame.id));
    const ids = [...before, ...rest].map((frame) => frame.id);
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
    const { status, endedBefore, told } = this.#expected;
    if (told !== undefined) expect(ofRecovery([...before, ...rest])).toEqual(told);
    else if (status === "success" && endedBefore !== true) expect(rest.length).toBeGreaterThan(0);
  }

  async #checkBatch(batchId: string): Promise<void> {
    const wanted = this.#expected.status === "success" ? "completed" : "cancelled";
    await this.#eventually(
      () => this.#host.d1<{ status: string }>(`SELECT status FROM batches WHERE batch_id = '${batchId}'`),
      (rows) => rows[0]?.status === wanted,
    );
    const text = await (await this.#host.fetch("GET", `/batches/${batchId}/results.jsonl`)).text();
    const lines = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { status: string; attempts: number; outputs?: object });
    const { attempts, files = {} } = this.#expected;
    for (const line of lines) expect(line.status).toBe(wanted);
    if (attempts !== undefined) expect(lines.map((line) => line.attempts)).toEqual(lines.map(() => attempts));
    const outputs = Object.fromEntries(Object.entries(files).map(([name, content]) => [`${name}.txt`, content]));
    if (wanted === "completed" && Object.keys(files).length > 0) expect(lines[0]!.outputs).toEqual(outputs);
    // What runs on after a cancel makes no further request.
    if (this.#reader === undefined) await this.#checkWork();
    await this.#eventually(
      () => this.#host.d1<EventRow>(`SELECT event_type FROM run_events WHERE run_id = '${batchId}' ORDER BY seq`),
      (rows) => rows.map((row) => row.event_type).join() === "batch.start,batch.end",
    );
  }

  /** Finished work was not redone: model requests, calls that acted, files. */
  async #checkWork(): Promise<void> {
    const { kill, holds } = this.#host;
    const { requests, whileHeld, executions = {}, files = {} } = this.#expected;
    const asked = holds.count(this.threadId, modelPoint(kill));
    if (whileHeld === undefined) expect(asked).toBe(requests);
    else expect(asked).toBeLessThanOrEqual(requests + whileHeld.mayAskMore);
    for (const [word, times] of Object.entries(executions)) {
      expect(holds.count(this.threadId, "tool_started", bashCall(word)), word).toBe(times);
    }
    if (this.#batchId !== undefined) return;
    for (const [name, content] of Object.entries(files)) {
      const file = await this.#host.fetch("GET", `/threads/${this.threadId}/files/outputs/${name}.txt`);
      expect(await file.text(), name).toBe(content);
    }
  }

  /** Every slot is free: three children at once, and none of them waits. */
  async #checkFollowUp(): Promise<void> {
    const children = [1, 2, 3].flatMap(() => ["@ & delegate general-purpose :: more :: @ say more"]);
    const body = { ...asking([...children, "@ say all"].join("\n")), multitask_strategy: "reject" };
    const response = await this.#host.fetch("POST", `/threads/${this.threadId}/runs/wait`, { body });
    const text = await response.text();
    expect([response.status, text.includes("all")], text.slice(0, 300)).toEqual([200, true]);
    expect((await this.#statuses())[0]).toBe("success");
  }

  /** Numbers of the thread's log without a gap; a run that was rolled back took its own with it. */
  async #checkLog(): Promise<void> {
    const query = `SELECT seq, run_id, event_type FROM run_events WHERE thread_id = '${this.threadId}' ORDER BY seq`;
    const rows = await this.#eventually(
      () => this.#host.d1<EventRow>(query),
      (seen) => seen.at(-1)?.event_type === "run.end",
    );
    const first = this.#expected.status === "gone" ? rows[0]!.seq : 1;
    expect(rows.map((row) => row.seq)).toEqual(rows.map((_, place) => first + place));
  }

  async #runs(): Promise<{ run_id: string; status: string }[]> {
    return this.#json("GET", `/threads/${this.threadId}/runs`);
  }

  /** Newest first. */
  async #statuses(): Promise<string[]> {
    return (await this.#runs()).map((run) => run.status);
  }

  /** Of every run, by number. */
  async #events(): Promise<EventRow[]> {
    const pages = (await this.#runs()).map(({ run_id }) =>
      this.#json<EventRow[]>("GET", `/threads/${this.threadId}/runs/${run_id}/events?limit=500`),
    );
    return (await Promise.all(pages)).flat().toSorted((a, b) => a.seq - b.seq);
  }

  async #json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.#host.fetch(method, path, body === undefined ? {} : { body });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === "" ? null : JSON.parse(text)) as T;
  }

  async #eventually<T>(look: () => T | Promise<T>, holds: (seen: T) => boolean): Promise<T> {
    return eventually(look, holds, PATIENCE_MS);
  }
}

function asking(script: string): Record<string, unknown> {
  return {
    assistant_id: "lead_agent",
    input: { messages: [{ type: "human", content: script }] },
    stream_mode: ["values", "updates", "messages-tuple", "custom"],
  };
}

/** The frames of a second attempt, each of which begins with the run's metadata. */
function ofRecovery(frames: readonly StreamFrame[]): [event: string, type?: string][] {
  const from = frames.findIndex(({ event }, place) => event === "metadata" && place > 0);
  return (from === -1 ? [] : frames.slice(from)).map(({ event, data }) =>
    event === "custom" ? [event, (JSON.parse(data) as { type: string }).type] : [event],
  );
}

const isOne = (count: number): boolean => count === 1;

const countOf = (events: readonly EventRow[], type: string): number =>
  events.filter((event) => event.event_type === type).length;

/** At least as many of each type. */
function hasAll(events: readonly EventRow[], types: readonly string[]): boolean {
  return types.every((type) => countOf(events, type) >= types.filter((each) => each === type).length);
}
