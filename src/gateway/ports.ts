/**
 * What the gateway needs from the rest of Deputy. Every method that reads stored rows takes the owner first (P7); a
 * missing row and another owner's row are the same.
 */
import type { OperatorAgent } from "../domain/assistant/agent-snapshot.ts";
import type { AssistantStore } from "../domain/assistant/assistant.ts";
import type { BatchReader } from "../domain/batch/batch-repository.ts";
import type { ManagedSubagentStore } from "../domain/delegation/managed-subagent.ts";
import type { Result } from "../domain/shared/result.ts";
import type { GraphSchemas } from "../protocol/assistants.ts";
import type { ListMessagesQuery, ListRunEventsQuery, RunEventRow } from "../protocol/run-events.ts";
import type { FoundRun, SearchRunsBody } from "../protocol/run-search.ts";
import type { SubagentSummary } from "../protocol/subagents.ts";
import type { ThreadRpc } from "../protocol/thread-rpc.ts";
import type { CountThreadsBody, SearchThreadsBody, Thread } from "../protocol/threads.ts";

export interface ThreadDirectory {
  stub(owner: string, threadId: string): ThreadRpc & { fetch(request: Request): Promise<Response> };
}

interface ThreadSearch {
  /** One page in the asked order, and how many threads match in all. */
  search(owner: string, query: SearchThreadsBody): Promise<{ threads: Thread[]; total: number }>;
  count(owner: string, query: CountThreadsBody): Promise<number>;
}

interface RunSearch {
  /** One page in the asked order, and whether there is a further one. */
  search(owner: string, query: SearchRunsBody): Promise<{ runs: FoundRun[]; isMore: boolean }>;
}

/** `next` is the cursor of the following page, null on the last: a page may end early, at its byte bound. */
export interface EventPage {
  readonly rows: RunEventRow[];
  readonly next: number | null;
}

interface OwnerRows {
  /** By id, from behind `after`. */
  threads(owner: string, after: string, limit: number): Promise<string[]>;
  countThreads(owner: string): Promise<number>;
  /** Threads whose rows outlived their own row. */
  strays(owner: string): Promise<string[]>;
  eraseThread(owner: string, threadId: string): Promise<void>;
  eraseAssistants(owner: string): Promise<number>;
  /** Of threads that are gone: nothing writes for them any more. */
  closeFences(owner: string, now: number): Promise<void>;
}

interface RunEventReader {
  /** Ascending; null when the run is unknown. The filters apply before the limit. */
  listRunEvents(
    key: { owner: string; thread_id: string },
    runId: string,
    query: ListRunEventsQuery,
  ): Promise<EventPage | null>;
  /** The thread of an owner's run; null when it is unknown. */
  threadOfRun(owner: string, runId: string): Promise<string | null>;
  /** As `listMessages`, of one run; null when the run is unknown. */
  listRunMessages(
    key: { owner: string; thread_id: string },
    runId: string,
    query: ListMessagesQuery,
  ): Promise<EventPage | null>;
  /** Ascending rows of category `message`. */
  listMessages(key: { owner: string; thread_id: string }, query: ListMessagesQuery): Promise<EventPage>;
}

interface GraphCatalogue {
  graphs(): readonly { graph_id: string; name: string; description: string | null }[];
  /** Names a run of `lead_agent` may choose its model by; the default one is first. */
  models(): readonly string[];
  /** A graph to look at. Refused when its factory fails; `config` is what a factory is called with. */
  describe(
    graphId: string,
    config: { readonly configurable: Record<string, unknown> },
  ): Promise<Result<GraphDescription, { readonly message: string }>>;
}

export interface GraphDescription {
  schemas(): GraphSchemas;
  draw(xray: boolean | number): Promise<{ nodes: Record<string, unknown>[]; edges: Record<string, unknown>[] }>;
  subgraphs(which: { namespace: string | undefined; recurse: boolean }): Promise<Record<string, GraphSchemas>>;
}

interface SubagentDirectory {
  /** Built-ins and configured subagents in the order leads are shown them: their names are taken. */
  operators(): readonly SubagentSummary[];
  readonly managed: ManagedSubagentStore;
}

export interface GatewayDeps {
  readonly auth: { readonly apiKeys: string | undefined; readonly devOwner: string | undefined };
  readonly threads: ThreadDirectory;
  readonly threadSearch: ThreadSearch;
  readonly runSearch: RunSearch;
  readonly owners: OwnerRows;
  readonly events: RunEventReader;
  readonly batches: BatchReader;
  /** Characters of a result that a list of items shows (`subagent_batches.preview_chars`). */
  readonly previewChars: number;
  readonly graphs: GraphCatalogue;
  /** Id of a graph's default assistant, and of an operator's agent by its name. */
  readonly assistantId: (name: string) => string;
  readonly assistants: AssistantStore;
  /** Agents of `deputy.config.ts`; their names are neither graph ids nor UUIDs. */
  readonly operatorAgents: readonly OperatorAgent[];
  readonly subagents: SubagentDirectory;
  readonly newId: () => string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Resolves after that many milliseconds; the pace of progress streams. */
  readonly pause: (ms: number) => Promise<void>;
  /** Structured log lines for faults; never sees a key or a body. */
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
  /** Serves the routes of test suites; absent for no. */
  readonly testRoutes?: boolean;
  /** Of `@langchain/langgraph`. */
  readonly langgraphVersion?: string;
  readonly version: string;
  readonly features: readonly string[];
}
