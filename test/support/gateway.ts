/** A gateway over real D1, with the parts a test wants to hold in its hands. */
import { env } from "cloudflare:test";
import { deployedDescriptions } from "../../src/agent/graphs/deployed-descriptions.ts";
import { operatorSummaries } from "../../src/agent/subagents/operator-summaries.ts";
import { parseDeputyConfig } from "../../src/config.ts";
import { createGateway } from "../../src/gateway/app.ts";
import type { GatewayDeps } from "../../src/gateway/ports.ts";
import { D1Assistants } from "../../src/platform/d1/assistants.ts";
import { BatchReads } from "../../src/platform/d1/batch-reads.ts";
import { D1OwnerRows } from "../../src/platform/d1/owner-rows.ts";
import { D1RunEventReader } from "../../src/platform/d1/run-event-reader.ts";
import { D1RunSearch } from "../../src/platform/d1/run-search.ts";
import { D1SubagentDefinitions } from "../../src/platform/d1/subagent-definitions.ts";
import { D1ThreadSearch } from "../../src/platform/d1/thread-search.ts";
import { defaultAssistantId } from "../../src/platform/identifiers.ts";
import { FakeThreads } from "./fake-threads.ts";

let minted = 0;

export function gatewayDeps(over: Partial<GatewayDeps> = {}): GatewayDeps {
  return {
    auth: { apiKeys: env.API_KEYS, devOwner: undefined },
    threads: new FakeThreads(),
    threadSearch: new D1ThreadSearch(env.DB),
    runSearch: new D1RunSearch(env.DB),
    owners: new D1OwnerRows(env.DB),
    events: new D1RunEventReader(env.DB),
    batches: new BatchReads(env.DB),
    previewChars: 2_000,
    graphs: {
      graphs: () => [
        { graph_id: "lead_agent", name: "Lead agent", description: "Delegates." },
        { graph_id: "echo", name: "Echo", description: null },
      ],
      models: () => ["scripted"],
      describe: deployedDescriptions({}),
    },
    assistantId: defaultAssistantId,
    assistants: new D1Assistants(env.DB),
    operatorAgents: [],
    subagents: {
      operators: () => operatorSummaries(parseDeputyConfig({}).subagents),
      managed: new D1SubagentDefinitions(env.DB),
    },
    newId: () => `id-${minted++}`,
    now: Date.now,
    pause: () => Promise.resolve(),
    log: () => {},
    version: "0.0.0-test",
    features: ["runs", "batches"],
    ...over,
  };
}

export interface Ask {
  readonly method?: string;
  readonly key?: string | null;
  readonly json?: unknown;
  readonly body?: BodyInit;
  readonly headers?: Record<string, string>;
}

/** One request as a client sends it; `key-alice` unless told otherwise. */
export async function ask(deps: GatewayDeps, path: string, over: Ask = {}): Promise<Response> {
  const { method = "GET", key = "key-alice", json, body, headers = {} } = over;
  const content = json === undefined ? body : JSON.stringify(json);
  const request = new Request(`http://gateway.test${path}`, {
    method,
    headers: {
      ...(key === null ? {} : { "x-api-key": key }),
      ...(json === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(content === undefined ? {} : { body: content }),
  });
  return createGateway(deps).fetch(request);
}

export interface Failure {
  code: string;
  message: string;
  request_id: string;
  details?: Record<string, unknown>;
}

export async function failure(response: Response): Promise<[number, string]> {
  const { code } = await response.json<Failure>();
  return [response.status, code];
}
