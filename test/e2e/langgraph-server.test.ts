import { readFileSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LangGraphServer } from "../support/langgraph-server.ts";

let server: LangGraphServer;
let client: Client;

async function connect(stateDir?: string): Promise<void> {
  server = await LangGraphServer.start(stateDir === undefined ? {} : { stateDir });
  client = new Client({ apiUrl: server.url });
}

beforeAll(async () => connect());
afterAll(async () => server?.close());

interface Frame {
  readonly event: string;
  readonly data: unknown;
}

interface LeadValues {
  readonly messages: readonly {
    id?: string;
    type: string;
    content: string;
    additional_kwargs: Record<string, unknown>;
  }[];
  readonly delegations: readonly Record<string, unknown>[];
}

async function run(threadId: string, content: string): Promise<{ frames: Frame[]; values: LeadValues }> {
  const frames: Frame[] = [];
  const input = { messages: [{ role: "user", content }] };
  for await (const frame of client.runs.stream(threadId, "lead_agent", {
    input,
    streamMode: ["values", "custom", "messages-tuple"],
  })) {
    frames.push(frame);
  }
  const { values } = await client.threads.getState<LeadValues>(threadId);
  return { frames, values };
}

const DELEGATING = [
  "@ delegate bash :: Add up :: <<'JOB'",
  '@ call bash {"command": "echo $((20 + 22)) > /workspace/sum.txt"}',
  "@ say summed by the child",
  "JOB",
  '@ call read_file {"path": "/workspace/sum.txt"}',
  "@ say the file holds {{result:2}}",
].join("\n");

describe("R162 lead_agent in LangGraph's own server", () => {
  let threadId: string;
  let first: Awaited<ReturnType<typeof run>>;

  beforeAll(async () => {
    threadId = (await client.threads.create()).thread_id;
    first = await run(threadId, DELEGATING);
  });

  const runIdOf = ({ frames }: typeof first) => (frames[0]!.data as { run_id: string }).run_id;

  it("R162 delegates with the scripted model and answers from what the child really did", () => {
    expect(first.frames.filter(({ event }) => event === "error")).toEqual([]);
    expect(first.values.messages.map(({ type }) => type)).toEqual(["human", "ai", "tool", "ai", "tool", "ai"]);
    expect(first.values.messages.at(-1)?.content.trim()).toBe("the file holds 42");
  });

  it("R162 the state holds the ledger, and the events of the delegation come over HTTP", () => {
    const [entry] = first.values.delegations;
    expect(first.values.delegations).toHaveLength(1);
    expect(entry).toMatchObject({
      subagent_type: "bash",
      status: "completed",
      run_id: runIdOf(first),
      description: "Add up",
    });
    const events = first.frames.filter(({ event }) => event === "custom").map(({ data }) => data as { type: string });
    expect(events.map(({ type }) => type)).toEqual([
      "task_started",
      "task_running",
      "task_running",
      "task_running",
      "task_completed",
    ]);
    expect(events.at(-1)).toMatchObject({ task_id: entry?.["id"], result: "summed by the child" });
  });

  it("R162 a child's words are in no token of the lead's", () => {
    const tokens = first.frames.filter(({ event }) => event === "messages").map(({ data }) => JSON.stringify(data));
    expect(tokens.join("")).toContain("holds");
    expect(tokens.filter((token) => token.includes('"content":"summed'))).toEqual([]);
  });

  it("R45 R162 the human message is in the state with an id of its own and the run's tag", async () => {
    const [human] = first.values.messages;
    expect(human?.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(human?.additional_kwargs["run_id"]).toBe(runIdOf(first));
    const again = await client.threads.getState<LeadValues>(threadId);
    expect(again.values.messages[0]?.id).toBe(human?.id);
  });

  it("R162 the server reads the graph's schemas and drawing", async () => {
    const [assistant] = await client.assistants.search({ graphId: "lead_agent" });
    const { state_schema } = await client.assistants.getSchemas(assistant!.assistant_id);
    expect(Object.keys(state_schema?.properties ?? {})).toEqual(expect.arrayContaining(["messages", "delegations"]));
    const { nodes } = await client.assistants.getGraph(assistant!.assistant_id);
    expect(nodes.map(({ id }) => id)).toEqual(["__start__", "model", "tools", "__end__"]);
  });

  it("R162 its checkpoints hold the conversation: a second run after a restart goes on with the thread", async () => {
    await connect(await server.stop());
    const { values } = await run(threadId, "@ say and on");
    expect(values.messages.slice(0, 6).map(({ id }) => id)).toEqual(first.values.messages.map(({ id }) => id));
    expect(values.messages.at(-1)?.content).toBe("and on");
    expect(values.delegations).toEqual(first.values.delegations);
  });
});

/** Every module that an import of `file` loads, packages by name, as Node resolves them; type imports load nothing. */
function loadedBy(file: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const text = readFileSync(file, "utf8");
  const imports = /^(?:import|export)\s(?!type\b)(?:[^;]*?\sfrom\s+)?"([^"]+)"|import\(\s*"([^"]+)"/gm;
  for (const match of text.matchAll(imports)) {
    const specifier = match[1] ?? match[2] ?? "";
    if (specifier.startsWith(".")) loadedBy(join(dirname(file), specifier), seen);
    else seen.add(specifier);
  }
  return seen;
}

describe("R162 what the graph loads", () => {
  const root = realpathSync(resolve(dirname(fileURLToPath(import.meta.url)), "../.."));
  const { graphs } = JSON.parse(readFileSync(join(root, "langgraph.json"), "utf8")) as {
    graphs: Record<string, string>;
  };
  const [path = "", name] = (graphs["lead_agent"] ?? "").split(":");
  const loaded = [...loadedBy(join(root, path))].map((each) => (each.startsWith("/") ? relative(root, each) : each));

  it("R161 R162 langgraph.json names makeLeadAgent, for the Node of the lock file", async () => {
    const { node_version } = JSON.parse(readFileSync(join(root, "langgraph.json"), "utf8")) as { node_version: string };
    expect([path, name]).toEqual(["./src/agent/lead/make-lead-agent.ts", "makeLeadAgent"]);
    expect(process.versions.node.split(".")[0]).toBe(node_version);
  });

  it("R162 is nothing of Cloudflare's and nothing above the agent", () => {
    expect(loaded.length).toBeGreaterThan(100);
    const layers = new Set(loaded.filter((each) => each.startsWith("src/")).map((each) => each.split("/")[1]));
    const allowed = new Set(["agent", "config.ts", "domain", "protocol"]);
    expect([...layers].filter((layer) => !allowed.has(layer ?? ""))).toEqual([]);
    expect(loaded).toContain("src/agent/subagents/executor.ts");
    expect(loaded.filter((each) => /^(cloudflare:|@cloudflare|drizzle|hono|wrangler|miniflare)/.test(each))).toEqual(
      [],
    );
  });
});
