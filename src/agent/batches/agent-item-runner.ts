/**
 * Runs a batch item with a subagent: a scratch workspace over the batch's files, the definition snapshotted at submit,
 * no checkpointer, because the unit of redo is the item. Owns the translation of a child's end into an item's outcome.
 */
import { Buffer } from "node:buffer";
import type { AgentServices } from "../graph/agent-services.ts";
import { type ChainParts, childHooks } from "../hooks/chains.ts";
import type { CircuitBreakers } from "../models/circuit-breakers.ts";
import type { ModelCatalog } from "../models/model.ts";
import { type BatchChildOutcome, runBatchChild } from "../subagents/batch-child.ts";
import { withOperatorSecrets } from "../subagents/operator-secrets.ts";
import type { SubagentDefinition } from "../subagents/subagent-definition.ts";
import type { SubagentService } from "../subagents/subagent-service.ts";
import { OUTPUTS_DIRECTORY, ScratchWorkspace } from "../tools/scratch-workspace.ts";
import { ToolAuthorization, type ToolPolicy } from "../tools/authorization.ts";
import { ASK_CLARIFICATION, askNobodyTool } from "../tools/ask-clarification.ts";
import type { Tool } from "../tools/tool.ts";
import type { DeputyConfig } from "../../config.ts";
import type { ItemOutputs } from "../../domain/batch/batch.ts";
import type { BatchItemOutcome } from "../../domain/batch/item-settlement.ts";
import type { Failpoint } from "../../domain/shared/failpoint.ts";
import type { RetrySettings } from "../../domain/model-errors/retry-policy.ts";
import { ItemToolStarts } from "./item-tool-starts.ts";
import type { BatchItemRunner, ItemSetting, RunnableItem } from "./item-runner.ts";

export interface AgentItemRunnerParts {
  readonly models: ModelCatalog;
  readonly tools: readonly Tool[];
  readonly subagents: SubagentService;
  readonly random: () => number;
  readonly now: () => number;
  readonly newId: () => string;
  readonly llmCall: RetrySettings;
  /** Tools that a person decides about: nobody can for an item, so a call of one fails it by name. */
  readonly approvals?: ChainParts["approvals"];
  /** The isolate's: items of many threads see the same provider failing. */
  readonly circuits: CircuitBreakers;
  readonly policy: ToolPolicy;
  /** The operator's log: why a policy gave no answer, what a graph has to tell. */
  readonly report: NonNullable<AgentServices["report"]>;
  readonly failpoint?: Failpoint | undefined;
  /** Of the configuration: where a configured agent's secrets are. */
  readonly subagentsConfig: DeputyConfig["subagents"];
}

export function agentItemRunner(parts: AgentItemRunnerParts): BatchItemRunner {
  return { run: (item, setting, signal) => runItem(parts, { item, setting, signal }) };
}

async function runItem(
  parts: AgentItemRunnerParts,
  { item, setting, signal }: { item: RunnableItem; setting: ItemSetting; signal: AbortSignal },
): Promise<BatchItemOutcome> {
  const { now, newId, random, models, llmCall, circuits, policy, report, approvals = {} } = parts;
  const principal = { owner: item.owner, role: setting.submitterRole };
  const authorization = new ToolAuthorization({ policy, principal, reportFault: report });
  const offered = [...parts.tools.filter(({ name }) => name !== ASK_CLARIFICATION), askNobodyTool];
  await authorization.prepare(offered.map(({ name }) => name));
  const tools = offered.filter(({ name }) => authorization.permits(name));
  const scratch = new ScratchWorkspace({ files: setting.files, now });
  const services = {
    workspace: scratch,
    toolAttempt: () => item.attempt,
    toolStarts: new ItemToolStarts(item),
    newId,
    now,
    report,
    ...failpointOf(parts, item),
  };
  const taskId = `${item.batchId}:${item.ordinal}`;
  const ended = await runBatchChild({
    taskId,
    definition: withOperatorSecrets(setting.definition as SubagentDefinition, parts.subagentsConfig),
    prompt: item.prompt,
    models,
    tools,
    hooks: childHooks({ services, random, llmCall, circuits, authorization, approvals }),
    services,
    service: parts.subagents,
    signal,
    timeoutMs: setting.timeoutMs,
    config: { metadata: { batch_id: item.batchId, item_key: item.key, attempt: item.attempt } },
  });
  return toOutcome(ended, signal, () => readOutputs(scratch));
}

function failpointOf(
  { failpoint }: AgentItemRunnerParts,
  { threadId }: RunnableItem,
): Pick<AgentServices, "failpoint"> {
  return failpoint === undefined
    ? {}
    : { failpoint: (name, detail) => failpoint(name, { threadId, ...(detail === undefined ? {} : { detail }) }) };
}

function toOutcome(ended: BatchChildOutcome, signal: AbortSignal, outputs: () => ItemOutputs | null): BatchItemOutcome {
  if (signal.aborted) return { kind: "aborted" };
  const { status, result, error, usage } = ended;
  if (status !== "completed") return { kind: "failed", error: `${status}: ${error ?? "no reason given"}` };
  const tokens = usage && {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    totalTokens: usage.total_tokens,
  };
  return { kind: "completed", result: result ?? "", usage: tokens, outputs: outputs() };
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function readOutputs(scratch: ScratchWorkspace): ItemOutputs | null {
  const files = scratch.outputs();
  if (files.length === 0) return null;
  const named = files.map(({ path, bytes }) => [path.slice(OUTPUTS_DIRECTORY.length + 1), toText(bytes)] as const);
  return Object.fromEntries(named);
}

function toText(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    return Buffer.from(bytes).toString("base64");
  }
}
