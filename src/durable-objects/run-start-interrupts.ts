/**
 * Which interrupts wait for an answer at the head of a thread, told from its stored writes alone. Owns the rule by which an
 * answer to one interrupt is never taken for another: an interrupt that a child has left behind is not pending, also
 * while the parent's row, which is written after the child's, still names it.
 */
import type { Interrupt, StateSnapshot } from "@langchain/langgraph";
import type { CheckpointPendingWrite } from "@langchain/langgraph-checkpoint";
import type { ThreadContext } from "./thread-context.ts";

/** LangGraph's channels of a task that are no output of it. */
const INTERRUPT = "__interrupt__";
const NO_OUTPUT: readonly string[] = [INTERRUPT, "__resume__", "__error__", "__error_source_node__"];
/** LangGraph's id for writes of the run itself. */
const NULL_TASK = "00000000-0000-0000-0000-000000000000";

export interface PendingInterrupts {
  /** In the order in which the graph asked. */
  readonly ids: readonly string[];
  /** Raised without an id: it takes no answer, its node runs again. */
  readonly withoutId: number;
  /** A child was asked further than the head tells: the graph has to go on before anything is answered. */
  readonly isStale: boolean;
}

interface WaitingTask {
  readonly taskId: string;
  readonly ids: readonly (string | undefined)[];
}

export async function readPendingInterrupts(context: ThreadContext): Promise<PendingInterrupts> {
  const tasks = waitingTasks(await headWrites(context, ""));
  const children = tasks.length === 0 ? [] : await askedByChildren(context);
  const fresh = tasks.map((task) => ({ ids: task.ids, stale: staleIds(task, children) }));
  const ids = fresh.flatMap((task) => task.ids.filter((id) => id === undefined || !task.stale.includes(id)));
  const named = ids.flatMap((id) => id ?? []);
  return {
    ids: [...new Set(named)],
    withoutId: ids.length - named.length,
    isStale: fresh.some(({ stale }) => stale.length > 0),
  };
}

/** What the graph asks at the head. LangGraph's snapshot also tells the questions of tasks that are done. */
export async function waitingInterrupts(context: ThreadContext, { tasks }: StateSnapshot): Promise<Interrupt[]> {
  const asked = tasks.flatMap((task) => task.interrupts);
  if (asked.length === 0) return [];
  const { ids } = await readPendingInterrupts(context);
  return asked.filter(({ id }) => id === undefined || ids.includes(id));
}

/** Whether an earlier answer at this checkpoint brought an update or a goto: LangGraph keeps one set of those a checkpoint. */
export async function hasCommandWrites(context: ThreadContext): Promise<boolean> {
  const writes = await headWrites(context, "");
  return writes.some(([taskId, channel]) => taskId === NULL_TASK && !NO_OUTPUT.includes(channel));
}

async function headWrites(context: ThreadContext, checkpointNs: string): Promise<readonly CheckpointPendingWrite[]> {
  const at = { thread_id: context.threadId, checkpoint_ns: checkpointNs };
  return (await context.saver.getTuple({ configurable: at }))?.pendingWrites ?? [];
}

function waitingTasks(writes: readonly CheckpointPendingWrite[]): WaitingTask[] {
  const finished = new Set(writes.flatMap(([taskId, channel]) => (NO_OUTPUT.includes(channel) ? [] : [taskId])));
  return writes.flatMap(([taskId, channel, value]) => {
    if (channel !== INTERRUPT || taskId === NULL_TASK || finished.has(taskId)) return [];
    return [{ taskId, ids: (Array.isArray(value) ? value : [value]).map((each) => (each as { id?: string }).id) }];
  });
}

interface AskingChild {
  readonly checkpointNs: string;
  readonly ids: readonly string[];
}

async function askedByChildren(context: ThreadContext): Promise<AskingChild[]> {
  const children: AskingChild[] = [];
  for (const checkpointNs of context.saver.childNamespaces(context.threadId)) {
    const ids = waitingTasks(await headWrites(context, checkpointNs)).flatMap((task) => task.ids);
    children.push({ checkpointNs, ids: ids.flatMap((id) => id ?? []) });
  }
  return children;
}

/** What a task still names though the children it started ask for something else by now. */
function staleIds({ taskId, ids }: WaitingTask, children: readonly AskingChild[]): string[] {
  const own = children.filter(({ checkpointNs }) => checkpointNs.split("|", 1)[0]?.endsWith(`:${taskId}`) === true);
  const asked = new Set(own.flatMap((child) => child.ids));
  return asked.size === 0 ? [] : (ids.filter((id) => id !== undefined && !asked.has(id)) as string[]);
}
