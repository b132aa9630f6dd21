/** The unmodified LangGraph SDK as the end-to-end tests use it: a client of one Deputy, and its stream as a plain list. */
import { Client } from "@langchain/langgraph-sdk";

export const LEAD = "lead_agent";

export interface Part {
  readonly id?: string;
  readonly event: string;
  readonly data: unknown;
}

export interface WireMessage {
  readonly id: string;
  readonly type: string;
  readonly content: string;
  readonly name?: string;
  readonly status?: string;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly name: string;
    readonly args: Record<string, unknown>;
  }[];
  readonly additional_kwargs?: Readonly<Record<string, unknown>>;
}

export interface LeadValues {
  readonly messages: readonly WireMessage[];
  readonly delegations?: readonly { readonly id: string; readonly status: string }[];
}

/** No key: the developer's environment must not reach a test. No retries: a failure is seen as it is. */
export function sdkClient(apiUrl: string, options: { apiKey?: string; maxRetries?: number } = {}): Client {
  return new Client({ apiUrl, apiKey: options.apiKey ?? null, callerOptions: { maxRetries: options.maxRetries ?? 0 } });
}

/** A run payload's input with one human message. */
export function human(content: string): { input: { messages: { type: string; content: string }[] } } {
  return { input: { messages: [{ type: "human", content }] } };
}

export async function collect(stream: AsyncIterable<unknown>): Promise<Part[]> {
  const parts: Part[] = [];
  for await (const part of stream) parts.push(part as Part);
  return parts;
}

/** The names a client would switch on, once each. */
export function eventNames(parts: readonly Part[]): string[] {
  return [...new Set(parts.map((part) => part.event))].toSorted();
}

export function dataOf<T>(parts: readonly Part[], event: string): T[] {
  return parts.filter((part) => part.event === event).map((part) => part.data as T);
}

export function runIdOf(parts: readonly Part[]): string {
  const [metadata] = dataOf<{ run_id: string }>(parts, "metadata");
  if (metadata === undefined) throw new Error("the stream has no metadata");
  return metadata.run_id;
}
