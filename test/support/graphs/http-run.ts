/** Runs of the test graphs over HTTP, as a client makes them. */
import { eventually } from "../eventually.ts";
import { newThread, sendJson, streamRun } from "../http.ts";

export interface SeenRun {
  readonly run_id: string;
  readonly status: string;
  readonly error: { readonly error: string; readonly message: string } | null;
  readonly graph_version: string | null;
  readonly assistant_version: number | null;
}

export interface SeenState {
  readonly values: Record<string, unknown>;
  readonly next: readonly string[];
  readonly tasks: readonly { readonly name: string; readonly interrupts: readonly { id?: string; value: unknown }[] }[];
}

export const stateOf = (threadId: string) => sendJson<SeenState>("GET", `/threads/${threadId}/state`);

export const runOf = (threadId: string, runId: string) =>
  sendJson<SeenRun>("GET", `/threads/${threadId}/runs/${runId}`);

export async function startRun(threadId: string, graphId: string, body: object): Promise<string> {
  const made = await sendJson<SeenRun>("POST", `/threads/${threadId}/runs`, { assistant_id: graphId, ...body });
  return made.run_id;
}

/** Any request wakes the object, which recovers first. */
export function ended(threadId: string, runId: string): Promise<SeenRun> {
  return eventually(
    () => runOf(threadId, runId),
    ({ status }) => status !== "running" && status !== "pending",
    15_000,
  );
}

/** One run on a thread of its own, streamed to its end. */
export async function ranOnce(graphId: string, body: object) {
  const threadId = await newThread();
  const frames = await streamRun(threadId, { assistant_id: graphId, ...body });
  const [run] = await sendJson<SeenRun[]>("GET", `/threads/${threadId}/runs`);
  return { threadId, frames, run: run!, state: await stateOf(threadId) };
}
