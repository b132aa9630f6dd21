/**
 * The graph of the simulated runs: a list of steps, over the object's real checkpointer, with LangGraph's own rules. Input
 * makes a checkpoint of its own; a task's writes commit before the checkpoint that takes them in; `null` goes on after
 * the newest checkpoint, whatever run it is of; a command's writes commit under the run's own task and are taken in by the
 * next checkpoint; a question that is not answered ends the stream; nothing left to do is the end.
 *
 * It stands in for LangGraph because it takes a thirtieth of the time and asks neither clock nor randomness. Runs of the
 * lead agent are not what it simulates: no model, no tools, no messages, no hooks. Their crashes are in the kill matrix
 * (docs/durability.md), with LangGraph itself.
 */
import { AIMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { type Command, isCommand, type StateSnapshot, UnknownInterruptError } from "@langchain/langgraph";
import type { BuiltGraph, GraphBinding, GraphCatalog } from "../../src/agent/graph-catalog.ts";
import { StepChildren } from "./step-child.ts";
import { aborted, type StepGraphPorts } from "./step-ports.ts";
import { CHILDREN, type Head, NOTHING, StepCheckpoints, type StepKind, type StepState, tasksOf } from "./step-state.ts";

export const STEP_GRAPH_ID = "steps";
export const STEP_NODE = "step";

/** LangGraph's channels of a task that asks, and its id for what the run itself writes. */
const INTERRUPT = "__interrupt__";
const RESUME = "__resume__";
const NULL_TASK = "00000000-0000-0000-0000-000000000000";

type StepHead = Head<StepState>;

/** What one `stream` is called with. */
interface Drive {
  readonly runId: string;
  readonly threadId: string;
  readonly signal: AbortSignal;
  readonly checkpoints: StepCheckpoints<StepState>;
  /** By interrupt. */
  readonly answers: ReadonlyMap<string, unknown>;
}

export function stepCatalog(ports: StepGraphPorts): GraphCatalog {
  return {
    has: (graphId) => graphId === STEP_GRAPH_ID,
    versionOf: () => undefined,
    serves: (graphId) => graphId === STEP_GRAPH_ID,
    adjusted: () => ({}),
    build: async (_graphId, _config, binding): Promise<BuiltGraph> => ({
      graph: new StepGraph(ports, binding) as unknown as BuiltGraph["graph"],
      configurable: {},
      recursionLimit: 100,
    }),
  };
}

class StepGraph {
  readonly channels = { edits: {} };
  readonly nodes = { __start__: {}, [STEP_NODE]: {} };
  readonly #ports: StepGraphPorts;
  readonly #binding: GraphBinding;
  readonly #children: StepChildren;

  constructor(ports: StepGraphPorts, binding: GraphBinding) {
    this.#ports = ports;
    this.#binding = binding;
    this.#children = new StepChildren(ports, binding);
  }

  async stream(input: unknown, options: RunnableConfig): Promise<AsyncIterable<unknown>> {
    return this.#steps(input as { steps: readonly StepKind[] } | Command | null, {
      runId: String(options.configurable?.["run_id"]),
      threadId: String(options.configurable?.["thread_id"]),
      signal: options.signal ?? new AbortController().signal,
      checkpoints: this.#checkpoints(options),
      answers: isCommand(input) ? new Map(Object.entries(input.resume ?? {})) : new Map(),
    });
  }

  async getState(config: RunnableConfig): Promise<StateSnapshot> {
    const checkpoints = this.#checkpoints(config);
    const head = await checkpoints.head(config.configurable?.["checkpoint_id"] as string | undefined);
    const next = head === undefined ? [] : nextOf(head);
    const asked = head?.writes.filter(([, channel]) => channel === INTERRUPT).flatMap(([, , value]) => value) ?? [];
    return {
      values: head?.state ?? {},
      next,
      tasks: next.map((name) => ({ id: `${head?.id}-task`, name, interrupts: asked })),
      config: checkpoints.at(head?.id),
      metadata: {},
      createdAt: head === undefined ? undefined : new Date(this.#ports.world.now()).toISOString(),
    } as unknown as StateSnapshot;
  }

  /** As LangGraph does it: a checkpoint of the edit's own, and the run's unfinished steps are left behind. */
  async updateState(config: RunnableConfig, values: unknown): Promise<RunnableConfig> {
    const checkpoints = this.#checkpoints(config);
    const head = await checkpoints.head();
    const before = head === undefined ? NOTHING : withCommands(head);
    const edited = (values as { log?: readonly string[] } | null)?.log ?? [];
    const state = { ...before, steps: before.steps.slice(0, before.done), log: [...before.log, ...edited] };
    return checkpoints.at((await checkpoints.put(head, state, "update")).id);
  }

  async *getStateHistory(config: RunnableConfig): AsyncGenerator<StateSnapshot> {
    yield await this.getState(config);
  }

  async *#steps(input: { steps: readonly StepKind[] } | Command | null, drive: Drive): AsyncGenerator {
    let head = await this.#begin(input, drive);
    const { state } = head;
    this.#ports.ledger.drive(drive.runId, {
      owner: state.runId,
      steps: state.steps,
      from: state.done,
    });
    if (input !== null) yield chunk(drive, head);
    while (head.state.done < head.state.steps.length) {
      if (drive.signal.aborted) throw new Error("aborted");
      const next = await this.#step(head, drive);
      if (next === undefined) return;
      head = next;
      yield chunk(drive, head);
    }
  }

  async #begin(input: { steps: readonly StepKind[] } | Command | null, drive: Drive): Promise<StepHead> {
    const { runId, checkpoints } = drive;
    const head = await checkpoints.head();
    if (input !== null && !isCommand(input)) {
      const { log, edits } = head === undefined ? NOTHING : withCommands(head);
      const state = { runId, steps: input.steps, done: 0, log: [...log, `${runId} start`], edits };
      return checkpoints.put(head, state, "input");
    }
    if (head === undefined) throw new Error("EmptyInputError: nothing to resume");
    const started = input === null ? head : await this.#command(input, head, drive);
    // Going on, LangGraph takes a command's writes in in memory: the next checkpoint stores them.
    return { ...started, state: withCommands(started) };
  }

  /** Strict, as Deputy starts every run: an answer to what nobody asks is refused before anything is written. */
  async #command({ update, goto }: Command, head: StepHead, { answers, checkpoints }: Drive): Promise<StepHead> {
    const asked = questionsOf(head);
    const unknown = [...answers.keys()].filter((id) => !asked.includes(id));
    if (unknown.length > 0) {
      throw new UnknownInterruptError(`nobody asks ${unknown.join(", ")}`, {
        reason: "unknown" as never,
        interruptIds: unknown,
        pendingIds: [...asked],
      });
    }
    const targets = [goto ?? []].flat().filter((node) => typeof node === "string");
    const branches = targets.map((node): [string, unknown] => [`branch:to:${node}`, "__start__"]);
    const writes = [...Object.entries((update ?? {}) as object), ...branches];
    if (writes.length === 0) return head;
    await checkpoints.putWrites(head, writes, NULL_TASK);
    // In memory they take the place of what an ended run left there; the storage keeps that.
    const others = head.writes.filter(([task]) => task !== NULL_TASK);
    const own = writes.map(([channel, value]): [string, string, unknown] => [NULL_TASK, channel, value]);
    const written = { ...head, writes: [...others, ...own] };
    if (answers.size > 0) return written;
    const { runId, done, steps } = head.state;
    for (const task of tasksOf(steps[done] ?? "work", done))
      if (isCommitted(head, task)) this.#ports.ledger.leaveBehind(`${runId}:${task}`);
    return checkpoints.put(written, withCommands(written), "input");
  }

  /** `undefined`: it asks, and nobody has answered. */
  async #step(head: StepHead, drive: Drive): Promise<StepHead | undefined> {
    const { state } = head;
    const kind = state.steps[state.done] ?? "work";
    if (kind === "ask" && !(await this.#ask(head, drive))) return undefined;
    const tasks = tasksOf(kind, state.done).filter((task) => !isCommitted(head, task));
    // All of them end before the step does, whatever becomes of one.
    const ended = await Promise.allSettled(tasks.map((task) => this.#task(head, { kind, task }, drive)));
    const failed = ended.find((each) => each.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const log = [...state.log, `${state.runId} ${state.done}`];
    return drive.checkpoints.put(head, { ...state, done: state.done + 1, log }, "loop");
  }

  /** Whether there is an answer; the question commits when there is none. */
  async #ask(head: StepHead, { checkpoints, answers }: Drive): Promise<boolean> {
    const [task = ""] = tasksOf("ask", head.state.done);
    if (isCommitted(head, task)) return true;
    const id = questionOf(head);
    if (!answers.has(id)) {
      await checkpoints.putWrites(head, [[INTERRUPT, [{ id, value: "how on?" }]]], taskIdOf(head, task));
      return false;
    }
    this.#ports.ledger.answer(id, answers.get(id));
    return true;
  }

  async #task(head: StepHead, { kind, task }: { kind: StepKind; task: string }, drive: Drive): Promise<void> {
    const { ledger, process } = this.#ports;
    const part = `${head.state.runId}:${task}`;
    const message =
      CHILDREN[kind] === undefined ? await this.#model(kind, part, drive) : await this.#delegate(kind, part, drive);
    // What the run's end cut off is no result.
    if (drive.signal.aborted) throw new Error("aborted");
    const resumed: [string, unknown][] = kind === "ask" ? [[RESUME, [drive.answers.get(questionOf(head))]]] : [];
    await drive.checkpoints.putWrites(head, [...resumed, ["messages", [message]]], taskIdOf(head, task));
    ledger.commit(process, drive.runId, part);
  }

  async #delegate(kind: StepKind, part: string, { runId, threadId, signal }: Drive) {
    const { ledger, process } = this.#ports;
    const steps = CHILDREN[kind]?.steps ?? 1;
    const result = await this.#children.delegate({ runId, threadId, taskId: part, steps, signal });
    if (!signal.aborted) ledger.endTask(process, part, result);
    return result;
  }

  async #model(kind: StepKind, part: string, { runId, signal }: Drive): Promise<AIMessage> {
    const { world, ledger, process } = this.#ports;
    ledger.execute(process, runId, part);
    const answer = world.effect(process, "model", () => `answer ${part}`);
    const text = await Promise.race([answer, aborted(signal)]);
    if (kind === "fail") throw new Error("the step fails");
    return new AIMessage({ id: part, content: text });
  }

  #checkpoints(config: RunnableConfig): StepCheckpoints<StepState> {
    const { world, newId } = this.#ports;
    const place = { thread_id: String(config.configurable?.["thread_id"]), checkpoint_ns: "" };
    return new StepCheckpoints({ world, newId, saver: this.#binding.saver }, place);
  }
}

function taskIdOf(head: StepHead, task: string): string {
  return `${head.id}-${task}`;
}

function isCommitted(head: StepHead, task: string): boolean {
  return head.writes.some(([writer, channel]) => writer === taskIdOf(head, task) && channel === "messages");
}

/** LangGraph's ids are 32 digits as well, and follow from the task that asks. */
function questionOf({ id }: StepHead): string {
  return id.replaceAll("-", "");
}

function questionsOf(head: StepHead): readonly string[] {
  const [task = ""] = tasksOf("ask", head.state.done);
  const isAsked = head.writes.some(([, channel]) => channel === INTERRUPT);
  return isAsked && !isCommitted(head, task) ? [questionOf(head)] : [];
}

/** The state with what commands wrote at this checkpoint. */
function withCommands({ state, writes }: StepHead): StepState {
  const edits = writes
    .filter(([task, channel]) => task === NULL_TASK && channel === "edits")
    .flatMap(([, , value]) => value as readonly string[]);
  return { ...state, edits: [...state.edits, ...edits] };
}

function nextOf({ state }: StepHead): string[] {
  return state.done < state.steps.length ? [STEP_NODE] : [];
}

function chunk({ checkpoints }: Drive, head: StepHead): unknown {
  const config = checkpoints.at(head.id);
  return ["checkpoints", { config, values: head.state, next: nextOf(head), metadata: {}, tasks: [] }];
}
