/**
 * The body of a checkpoint row, and which values go into it.
 *
 * Owns: what is stored inline and what by reference to the row that has the value (`planValues`); packing. A channel
 * without a version was never written: its initial value comes from the graph and is not stored.
 */
import type {
  ChannelVersions,
  Checkpoint,
  CheckpointMetadata,
  SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { invariant } from "../../domain/shared/assert.ts";
import type { ValueHolders } from "./checkpoint-rows.ts";
import { packBody, unpackBody } from "./packed-body.ts";
import { loadValue, type StoredValue, storeValue } from "./stored-value.ts";

/** PERSISTED: header of `checkpoints.body`; segment 0 is the metadata, then the values in the order of `values`. */
interface CheckpointHeader {
  readonly v: 1;
  readonly checkpoint: Omit<Checkpoint, "channel_values">;
  readonly metadata_type: string;
  /** `[channel, type]` of each value that this row has. */
  readonly values: readonly (readonly [channel: string, type: string])[];
}

export interface CheckpointDocument {
  readonly checkpoint: Omit<Checkpoint, "channel_values">;
  readonly metadata: StoredValue;
  /** The values in this row only. */
  readonly values: ReadonlyMap<string, StoredValue>;
}

export interface Parent {
  readonly checkpointId: string;
  /** Undefined when no such row is stored. */
  readonly holders: ValueHolders | undefined;
}

/** Where each value of `checkpoint` is held once its row is saved; `undefined` as `parent` means a root. */
export function planValues(
  checkpoint: Checkpoint,
  newVersions: ChannelVersions,
  parent: Parent | undefined,
  isCopy: boolean,
): ValueHolders {
  const holders: ValueHolders = {};
  for (const channel of Object.keys(checkpoint.channel_values)) {
    const version = checkpoint.channel_versions[channel];
    if (version === undefined) continue;
    const carried = parent?.holders?.[channel];
    if (Object.hasOwn(newVersions, channel)) holders[channel] = [version];
    else if (carried?.[0] === version) holders[channel] = [version, carried[1] ?? parent!.checkpointId];
    // Not new, yet the parent has it not: a copy of another branch's checkpoint, or a parent that is not stored.
    else if (parent !== undefined || isCopy) holders[channel] = [version];
  }
  return holders;
}

export async function serialiseCheckpoint(
  serde: SerializerProtocol,
  checkpoint: Checkpoint,
  metadata: CheckpointMetadata,
  holders: ValueHolders,
): Promise<CheckpointDocument> {
  const { channel_values: values, ...rest } = checkpoint;
  const own = Object.keys(holders).filter((channel) => holders[channel]![1] === undefined);
  const [storedMetadata, ...storedValues] = await Promise.all([
    storeValue(serde, metadata),
    ...own.map((channel) => storeValue(serde, values[channel])),
  ]);
  const entries = own.map((channel, place) => [channel, storedValues[place]!] as const);
  return { checkpoint: rest, metadata: storedMetadata, values: new Map(entries) };
}

export function packCheckpoint({ checkpoint, metadata, values }: CheckpointDocument): Uint8Array {
  const header: CheckpointHeader = {
    v: 1,
    checkpoint,
    metadata_type: metadata.type,
    values: [...values].map(([channel, value]) => [channel, value.type] as const),
  };
  return packBody({ header, segments: [metadata.bytes, ...[...values.values()].map((value) => value.bytes)] });
}

export function unpackCheckpoint(body: Uint8Array): CheckpointDocument {
  const { header, segments } = unpackBody<CheckpointHeader>(body);
  invariant(header.v === 1, `checkpoint body of unknown version ${String(header.v)}`);
  const values = header.values.map(
    ([channel, type], place) => [channel, { type, bytes: segments[place + 1]! }] as const,
  );
  return {
    checkpoint: header.checkpoint,
    metadata: { type: header.metadata_type, bytes: segments[0]! },
    values: new Map(values),
  };
}

export async function loadMetadata(
  serde: SerializerProtocol,
  document: CheckpointDocument,
): Promise<CheckpointMetadata> {
  return (await loadValue(serde, document.metadata)) as CheckpointMetadata;
}
