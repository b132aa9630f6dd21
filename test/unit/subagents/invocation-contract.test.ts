/**
 * What a child is invoked with and what its parent streams, on the whole lead agent with a model that fires callbacks
 * (R132). The same over HTTP is `test/workers/thread/child-streams.test.ts`.
 */
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { CallbackManager } from "@langchain/core/callbacks/manager";
import { HumanMessage, type BaseMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { inheritedCallbacks } from "../../../src/agent/subagents/inherited-callbacks.ts";
import { leadFixture } from "../../support/lead-fixture.ts";

const SCRIPT = `Delegate.
@ usage 100 7
@ delegate general-purpose :: count :: <<'CHILD'
Count.
@ usage 10 1
@ call bash {"command": "echo $((40 + 2))"}
@ say child says {{result:1:line 1}}
CHILD
@ say lead says {{result:1}}`;

interface SeenCall {
  readonly runId: string;
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

type ChatModelStart = Parameters<NonNullable<BaseCallbackHandler["handleChatModelStart"]>>;

/** Notes every model call it is told of. */
class Recorder extends BaseCallbackHandler {
  override readonly name: string;
  readonly parentJournal: boolean;
  readonly starts: SeenCall[] = [];
  readonly ends: string[] = [];

  constructor(name: string, parentJournal = false) {
    super();
    this.name = name;
    this.parentJournal = parentJournal;
  }

  override handleChatModelStart(...[, , runId, , , tags = [], metadata = {}]: ChatModelStart): void {
    this.starts.push({ runId, tags, metadata });
  }

  override handleLLMEnd(_output: unknown, runId: string): void {
    this.ends.push(runId);
  }
}

async function delegate() {
  const fixture = leadFixture();
  const recorder = new Recorder("recorder");
  const journal = new Recorder("journal", true);
  const chunks: [string[], string, unknown][] = [];
  const stream = await fixture.graph.stream(
    { messages: [new HumanMessage({ id: "h1", content: SCRIPT })] },
    {
      ...fixture.config,
      callbacks: [recorder, journal],
      tags: ["from-client"],
      metadata: { tenant: "t-1" },
      streamMode: ["messages", "custom"],
      subgraphs: true,
      durability: "sync",
    },
  );
  for await (const chunk of stream as unknown as AsyncIterable<[string[], string, unknown]>) chunks.push(chunk);
  const ofChild = (call: SeenCall) => call.tags.includes("subagent:general-purpose");
  return { recorder, journal, chunks, child: recorder.starts.filter(ofChild) };
}

describe("a child's model call", () => {
  it("R133 R134 has the run's thread and run id, the client's tags and metadata, and a tag of its own", async () => {
    const { child, recorder } = await delegate();
    expect(child).toHaveLength(2);
    for (const { tags, metadata } of child) {
      expect(tags).toContain("from-client");
      expect(metadata).toMatchObject({ tenant: "t-1", thread_id: "thread-1", run_id: "run-1" });
      expect(String(metadata["langgraph_checkpoint_ns"])).toMatch(/^tools:[^|]+\|model:/);
    }
    expect(
      recorder.starts.filter((call) => !child.includes(call)).every(({ tags }) => tags.includes("from-client")),
    ).toBe(true);
  });

  it("R135 is not told to the parent's journal, which goes on hearing of the parent's", async () => {
    const { recorder, journal } = await delegate();
    const lead = recorder.starts.filter(({ tags }) => !tags.includes("subagent:general-purpose"));
    expect(journal.starts.map(({ runId }) => runId)).toEqual(lead.map(({ runId }) => runId));
    expect(journal.ends).toHaveLength(2);
  });

  it("R136 is told once to every other handler, and counted once by the collector beside them", async () => {
    const { recorder, chunks } = await delegate();
    expect(recorder.ends).toHaveLength(4);
    expect(new Set(recorder.ends).size).toBe(4);
    const events = chunks
      .filter(([, mode]) => mode === "custom")
      .map(([, , event]) => event as Record<string, unknown>);
    expect(
      events.map(({ type, usage }) => [type, (usage as { total_tokens: number } | undefined)?.total_tokens]),
    ).toEqual([
      ["task_started", undefined],
      ["task_running", 11],
      ["task_running", 11],
      ["task_running", 22],
      ["task_completed", 22],
    ]);
  });

  it("R131 R136 streams its tokens under its namespace, all of them, and none at the root", async () => {
    const { chunks } = await delegate();
    const texts = (isRoot: boolean) =>
      chunks
        .filter(([namespace, mode]) => mode === "messages" && (namespace.length === 0) === isRoot)
        .map(([, , payload]) => (payload as [BaseMessage])[0])
        .filter((message) => message.getType() === "ai")
        .map((message) => message.text)
        .filter((text) => text !== "");
    expect(texts(false).map((text) => text.trim())).toEqual(["child", "says", "42"]);
    expect(texts(true).join("")).toBe("lead says Task Succeeded. Result: child says 42");
  });
});

describe("R135 inherited callbacks", () => {
  it("are a copy without the parent's journal; the parent's manager and list keep it", () => {
    const [kept, journal] = [new Recorder("kept"), new Recorder("journal", true)];
    const manager = new CallbackManager();
    manager.addHandler(kept, true);
    manager.addHandler(journal, true);
    manager.addTags(["a"]);
    const copy = inheritedCallbacks(manager) as CallbackManager;
    expect(copy).not.toBe(manager);
    expect(copy.inheritableHandlers).toEqual([kept]);
    expect(copy.tags).toEqual(["a"]);
    expect(manager.handlers).toEqual([kept, journal]);
    expect(manager.inheritableHandlers).toEqual([kept, journal]);
    const list = [kept, journal];
    expect(inheritedCallbacks(list)).toEqual([kept]);
    expect(list).toHaveLength(2);
  });
});
