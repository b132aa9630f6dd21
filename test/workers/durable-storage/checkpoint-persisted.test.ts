/** Rows as the first release wrote them, byte for byte: whoever changes a persisted shape must keep reading these. */
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { expect, it } from "vitest";
import { CHECKPOINT_SCHEMA } from "../../../src/platform/durable-storage/checkpoint-schema.ts";
import { DurableCheckpointSaver } from "../../../src/platform/durable-storage/checkpoint-saver.ts";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { climbSchemaLadder } from "../../../src/platform/durable-storage/schema-ladder.ts";
import { threadConfig } from "../../support/checkpoints.ts";
import { inFreshObject } from "../../support/object-storage.ts";

const encoder = new TextEncoder();

/** Four bytes of header length, the header, the segments. */
function body(header: string, ...segments: string[]): Uint8Array {
  const lengths = segments.map((segment) => encoder.encode(segment).byteLength).join(",");
  const head = encoder.encode(`{"header":${header},"lengths":[${lengths}]}`);
  return new Uint8Array([0, 0, head.length >> 8, head.length & 255, ...head, ...encoder.encode(segments.join(""))]);
}

const ROOT = "1f000000-0000-6000-8000-000000000001";
const HEAD = "1f000000-0000-6000-8000-000000000002";

function documentHeader(id: string, versions: string, values: string): string {
  const checkpoint = `{"v":4,"id":"${id}","ts":"2026-01-01T00:00:00.000Z","channel_versions":${versions},"versions_seen":{}}`;
  return `{"v":1,"checkpoint":${checkpoint},"metadata_type":"json","values":${values}}`;
}

it("a thread of the first release: inline and carried values, a snapshot, writes with their task paths", async () => {
  await inFreshObject(async (storage) => {
    climbSchemaLadder(storage, [CHECKPOINT_SCHEMA]);
    const insert = "INSERT INTO checkpoints VALUES ('t', '', ?, ?, ?, 0, ?)";
    const rootValues = '[["title","json"],["messages","json"],["raw","bytes"]]';
    storage.sql.exec(
      insert,
      ROOT,
      null,
      '{"title":[1],"messages":[1],"raw":[1]}',
      body(
        documentHeader(ROOT, '{"title":1,"messages":1,"raw":1}', rootValues),
        '{"source":"input","step":-1,"parents":{}}',
        '"old"',
        '{"lc":2,"type":"delta_snapshot","value":["hi"]}',
        "raw",
      ),
    );
    storage.sql.exec(
      insert,
      HEAD,
      ROOT,
      `{"title":[1,"${ROOT}"],"turns":[1]}`,
      body(
        documentHeader(HEAD, '{"title":1,"messages":2,"turns":1}', '[["turns","json"]]'),
        '{"source":"loop","step":0,"parents":{}}',
        "1",
      ),
    );
    const writes = '{"v":1,"entries":[[0,"messages","json","~p"],[-3,"__interrupt__","json",""]]}';
    storage.sql.exec(
      "INSERT INTO checkpoint_writes VALUES ('t', '', ?, 'task', 0, ?)",
      ROOT,
      body(writes, '["more"]', '"ask"'),
    );

    ensureSchema(storage);
    const saver = new DurableCheckpointSaver({ storage });
    const head = await saver.getTuple(threadConfig());
    expect(head?.checkpoint.channel_values).toEqual({ title: "old", turns: 1 });
    expect(head?.metadata).toEqual({ source: "loop", step: 0, parents: {} });
    const root = await saver.getTuple(head!.parentConfig!);
    expect(root?.checkpoint.channel_values).toEqual({
      title: "old",
      messages: new DeltaSnapshot(["hi"]),
      raw: encoder.encode("raw"),
    });
    expect(root?.pendingWrites).toEqual([
      ["task", "__interrupt__", "ask"],
      ["task", "messages", ["more"]],
    ]);
    const history = await saver.getDeltaChannelHistory({ config: head!.config, channels: ["messages"] });
    expect(history).toEqual({
      messages: { seed: new DeltaSnapshot(["hi"]), writes: [["task", "messages", ["more"]]] },
    });
  });
});
