/** One good request for every route of the gateway, by operation id; a route without one fails the route tests. */
export interface RouteSample {
  readonly path: string;
  readonly json?: unknown;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of an owner's that other tests have as well. */
  readonly key?: string;
  /** Its stream does not end by itself. */
  readonly isEndless?: true;
  /** It needs a run that has not ended, with a delegation under way; its path names them. */
  readonly needsActiveRun?: true;
}

const RUN = { assistant_id: "lead_agent", input: { messages: [] } };

export const ROUTE_SAMPLES: Readonly<Record<string, RouteSample>> = {
  getOk: { path: "/ok" },
  getInfo: { path: "/info" },
  searchAssistants: { path: "/assistants/search", json: {} },
  getAssistant: { path: "/assistants/missing" },
  createAssistant: {
    path: "/assistants",
    json: { graph_id: "lead_agent", assistant_id: "sampled", if_exists: "do_nothing" },
  },
  countAssistants: { path: "/assistants/count", json: {} },
  patchAssistant: { path: "/assistants/missing", json: { name: "Sampled" } },
  deleteAssistant: { path: "/assistants/missing" },
  getAssistantGraph: { path: "/assistants/missing/graph" },
  getAssistantSchemas: { path: "/assistants/missing/schemas" },
  listAssistantSubgraphs: { path: "/assistants/missing/subgraphs" },
  getAssistantSubgraph: { path: "/assistants/missing/subgraphs/inner" },
  listAssistantVersions: { path: "/assistants/missing/versions", json: {} },
  setLatestAssistantVersion: { path: "/assistants/missing/latest", json: { version: 1 } },
  createThread: { path: "/threads", json: { thread_id: "t" } },
  searchRuns: { path: "/runs/search", json: {} },
  searchThreads: { path: "/threads/search", json: {} },
  countThreads: { path: "/threads/count", json: {} },
  pruneThreads: { path: "/threads/prune", json: { thread_ids: ["missing"] } },
  copyThread: { path: "/threads/t/copy" },
  exportThread: { path: "/threads/t/export" },
  exportOwner: { path: "/owner/export?after=zzzz" },
  eraseOwner: { path: "/owner?confirm=erase", key: "key-erased" },
  getTokenUsage: { path: "/threads/t/token-usage" },
  getMessagePage: { path: "/threads/t/messages/page" },
  listRunMessages: { path: "/threads/t/runs/r/messages" },
  getThread: { path: "/threads/t" },
  patchThread: { path: "/threads/t", json: { metadata: {} } },
  deleteThread: { path: "/threads/t" },
  getState: { path: "/threads/t/state" },
  getStateAt: { path: "/threads/t/state/cp" },
  postStateAt: { path: "/threads/t/state/checkpoint", json: { checkpoint: { checkpoint_id: "cp" } } },
  updateState: { path: "/threads/t/state", json: { values: {} } },
  patchState: { path: "/threads/t/state", json: { metadata: { tag: "x" } } },
  postHistory: { path: "/threads/t/history", json: {} },
  getHistory: { path: "/threads/t/history" },
  createRun: { path: "/threads/t/runs", json: RUN },
  streamRun: { path: "/threads/t/runs/stream", json: RUN },
  waitRun: { path: "/threads/t/runs/wait", json: RUN },
  listRuns: { path: "/threads/t/runs" },
  getRun: { path: "/threads/t/runs/r" },
  deleteRun: { path: "/threads/t/runs/r" },
  cancelRun: { path: "/threads/t/runs/r/cancel", needsActiveRun: true },
  createRunBatch: { path: "/runs/batch", json: [RUN] },
  cancelRuns: { path: "/runs/cancel", json: { thread_id: "t", status: "all" } },
  cancelTask: { path: "/threads/t/runs/r/tasks/call_1/cancel", needsActiveRun: true },
  joinRun: { path: "/threads/t/runs/r/join" },
  joinRunStream: { path: "/threads/t/runs/r/stream" },
  joinStatelessRunStream: { path: "/runs/r/stream" },
  joinThreadStream: { path: "/threads/t/stream", isEndless: true },
  createStatelessRun: { path: "/runs", json: RUN },
  streamStatelessRun: { path: "/runs/stream", json: RUN },
  waitStatelessRun: { path: "/runs/wait", json: RUN },
  listRunEvents: { path: "/threads/t/runs/r/events" },
  listMessages: { path: "/threads/t/messages" },
  listFiles: { path: "/threads/t/files" },
  getFile: { path: "/threads/t/files/a/b.txt" },
  putFile: { path: "/threads/t/files/a/b.txt", body: "text" },
  deleteFile: { path: "/threads/t/files/a/b.txt" },
  createBatch: {
    path: "/threads/t/batches",
    json: { title: "Sums", subagent_type: "bash", items: [{ key: "a", prompt: "1+1" }] },
  },
  getBatch: { path: "/batches/b" },
  listBatchItems: { path: "/batches/b/items" },
  cancelBatch: { path: "/batches/b/cancel" },
  exportBatch: { path: "/batches/b/results.jsonl" },
  listSubagents: { path: "/subagents" },
  getSubagent: { path: "/subagents/bash" },
  createSubagent: { path: "/subagents", json: { name: "sampled", description: "Samples.", system_prompt: "Sample." } },
  updateSubagent: {
    path: "/subagents/sampled",
    json: { version: 1, description: "Samples.", system_prompt: "Sample again." },
  },
  enableSubagent: { path: "/subagents/sampled/enable" },
  disableSubagent: { path: "/subagents/sampled/disable" },
  deleteSubagent: { path: "/subagents/sampled" },
  streamBatchProgress: { path: "/batches/b/events" },
};
