/** Assistants with the unmodified SDK: made, found, changed, deleted, and run, over a crash as well. */
import type { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DeputyServer, eventually } from "../support/deputy-server.ts";
import { human, type LeadValues, sdkClient } from "../support/sdk.ts";

const OVERRIDES = {
  agents: {
    custom: {
      reviewer: { description: "Reviews.", instructions: "You review. Secret operator text.", allowed_subagents: [] },
    },
  },
};

const deputy = new DeputyServer({ env: { DEPUTY_OVERRIDES: JSON.stringify(OVERRIDES) } });
let client: Client;

beforeAll(async () => {
  await deputy.start();
  client = sdkClient(deputy.url);
});
afterAll(() => deputy.close());

const statusOf = (call: Promise<unknown>): Promise<number | undefined> =>
  call.then(
    () => undefined,
    (error: unknown) => (error as { status?: number }).status,
  );

const DELEGATION = [
  "@ & delegate bash :: look :: say bash was here",
  "@ & delegate general-purpose :: look :: say general was here",
  "@ say {{result:1}} / {{result:2}}",
].join("\n");

async function answerOf(assistantId: string, script: string, options: object = {}): Promise<string> {
  const { thread_id: threadId } = await client.threads.create();
  const values = (await client.runs.wait(threadId, assistantId, {
    ...human(script),
    ...options,
  })) as unknown as LeadValues;
  return values.messages.at(-1)!.content;
}

describe("client.assistants", () => {
  it("creates, gets, updates, searches, counts and deletes", async () => {
    const made = await client.assistants.create({
      graphId: "lead_agent",
      name: "Auditor",
      config: { configurable: { allowed_subagents: ["bash"] } },
      metadata: { team: "e2e" },
    });
    expect(made).toMatchObject({ version: 1, name: "Auditor", graph_id: "lead_agent", context: {} });
    expect(made.assistant_id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    expect(await client.assistants.get(made.assistant_id)).toEqual(made);
    const updated = await client.assistants.update(made.assistant_id, { metadata: { more: true }, name: "Auditor 2" });
    expect(updated).toMatchObject({ version: 2, name: "Auditor 2", metadata: { team: "e2e", more: true } });
    const metadata = { team: "e2e" };
    expect(await client.assistants.search({ metadata })).toEqual([updated]);
    expect(await client.assistants.count({ metadata })).toBe(1);
    await client.assistants.delete(made.assistant_id);
    expect(await client.assistants.search({ metadata })).toEqual([]);
    expect(await statusOf(client.assistants.get(made.assistant_id))).toBe(404);
    expect(await statusOf(client.assistants.delete(made.assistant_id))).toBe(404);
  });

  it("takes an id of one's own once, and answers the one that is there when asked so", async () => {
    const payload = { graphId: "lead_agent", assistantId: "my-own", name: "First" };
    const first = await client.assistants.create(payload);
    expect(await statusOf(client.assistants.create({ ...payload, name: "Second" }))).toBe(409);
    expect(await client.assistants.create({ ...payload, name: "Second", ifExists: "do_nothing" })).toEqual(first);
  });

  it("lists the operator's agents, which nobody changes, and never their instructions", async () => {
    const [reviewer] = await client.assistants.search({ name: "reviewer" });
    expect(reviewer).toMatchObject({
      graph_id: "lead_agent",
      description: "Reviews.",
      metadata: { created_by: "system" },
    });
    expect(JSON.stringify(reviewer)).not.toContain("Secret");
    for (const id of ["reviewer", reviewer!.assistant_id]) {
      expect(await client.assistants.get(id)).toEqual(reviewer);
      expect(await statusOf(client.assistants.update(id, { name: "x" }))).toBe(403);
      expect(await statusOf(client.assistants.delete(id))).toBe(403);
    }
  });
});

describe("runs of assistants", () => {
  it("R9 R10 delegate to what their assistant allows; the run's metadata tells it; the run may narrow it", async () => {
    const { assistant_id: id } = await client.assistants.create({
      graphId: "lead_agent",
      config: { configurable: { allowed_subagents: ["bash"] } },
      metadata: { team: "runs" },
    });
    const answer = await answerOf(id, DELEGATION, { metadata: { allowed_subagents: null } });
    expect(answer).toContain("bash was here");
    expect(answer).toContain("Unknown subagent type 'general-purpose'. Available: bash");
    const { thread_id: threadId } = await client.threads.create();
    const run = await client.runs.create(threadId, id, { ...human("@ say hello"), context: { allowed_subagents: [] } });
    expect(run.metadata).toMatchObject({ team: "runs", allowed_subagents: [] });
    await client.runs.join(threadId, run.run_id);
    expect((await client.runs.get(threadId, run.run_id)).assistant_id).toBe(id);
  });

  it("of an operator's agent answer, without anyone to delegate to", async () => {
    expect(await answerOf("reviewer", "@ say reviewed")).toBe("reviewed");
    expect(await answerOf("reviewer", "@ delegate bash :: look :: say x\n@ say {{result:1}}")).not.toContain(
      "Task Succeeded",
    );
  });

  it("R9 P1 keep their list when the assistant is deleted and the server killed in the middle", async () => {
    const { assistant_id: id } = await client.assistants.create({
      graphId: "lead_agent",
      config: { configurable: { allowed_subagents: ["bash"] } },
    });
    const { thread_id: threadId } = await client.threads.create();
    const script = `@ call bash {"command": "sleep 4"}\n${DELEGATION.replace("1}} / {{result:2", "2}} / {{result:3")}`;
    const run = await client.runs.create(threadId, id, human(script));
    await eventually(
      () => client.threads.getState<LeadValues>(threadId),
      ({ values }) => (values.messages?.length ?? 0) > 1,
      20_000,
    );
    await client.assistants.delete(id);
    await deputy.kill();
    await deputy.start();
    const ended = await eventually(
      () => client.runs.get(threadId, run.run_id),
      ({ status }) => status !== "running" && status !== "pending",
      60_000,
    );
    expect(ended.status).toBe("success");
    expect(ended.metadata).toMatchObject({ allowed_subagents: ["bash"] });
    const { values } = await client.threads.getState<LeadValues>(threadId);
    expect(values.messages.at(-1)!.content).toMatch(/bash was here.*Available: bash/s);
  });

  it("of a deleted assistant are refused as of one that never was", async () => {
    const { assistant_id: id } = await client.assistants.create({ graphId: "lead_agent" });
    await client.assistants.delete(id);
    const { thread_id: threadId } = await client.threads.create();
    expect(await statusOf(client.runs.create(threadId, id, human("@ say x")))).toBe(404);
    expect(await statusOf(client.runs.wait(null, id, human("@ say x")))).toBe(404);
  });
});
