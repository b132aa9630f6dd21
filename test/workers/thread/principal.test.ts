/** Whom a run belongs to: written when it is accepted, and judged by at every start of it (R123). */
import { env, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import type { DeputyConfigInput } from "../../../src/config.ts";
import type { Role } from "../../../src/domain/trust/principal.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { asking, newThread, send, sendJson, streamRun } from "../../support/http.ts";
import { type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

const config: DeputyConfigInput = { tools: { roles: { user: { deny: ["probe"] } } } };

const never = (): Promise<string> => new Promise(() => undefined);

function probes(answer: () => Promise<string> = async () => "seen") {
  const started: string[] = [];
  const probe = plainTool("probe", async () => {
    started.push("probe");
    return succeeded(await answer());
  });
  const gate = plainTool("gate", async () => {
    started.push("gate");
    return succeeded(await answer());
  });
  return { started, options: { tools: [probe, gate], config } };
}

async function start(
  runtime: ThreadRuntime,
  script: string,
  { role, body = {} }: { role?: Role; body?: Record<string, unknown> } = {},
) {
  const command = { graph_id: "lead_agent", body: createRunBodySchema.parse(asking(script, body)) };
  const origin = role === undefined ? undefined : { principal: { owner: "alice", role } };
  const created = await runtime.runs.create(command, origin);
  if (!created.ok) throw new Error(created.error.message);
  return created.value;
}

async function answerOf({ context }: ThreadRuntime): Promise<string> {
  const { messages } = JSON.parse(await context.graphs.renderState(undefined)) as { messages: { content: string }[] };
  return messages.at(-1)!.content;
}

async function answerTo(thread: ThreadWakes, script: string, from: Parameters<typeof start>[2]): Promise<string> {
  const runtime = await thread.create(probes().options);
  const { runId } = await start(runtime, script, from);
  await runtime.context.live.get(runId)!.done;
  return answerOf(runtime);
}

const LEAD = "@ call probe {}\n@ say {{result:1}}";
const CHILD =
  "@ delegate general-purpose :: look :: <<'CHILD'\n@ call probe {}\n@ say child {{result:1}}\nCHILD\n@ say {{result:1}}";

/** What the object stored of the runs that were created over HTTP. */
async function storedPrincipals(owner: string, threadId: string): Promise<unknown[]> {
  const stub = env.THREADS.get(env.THREADS.idFromName(threadObjectName(owner, threadId)));
  return runInDurableObject(stub, (_instance, { storage }) => {
    const rows = storage.sql.exec<{ command: string }>("SELECT command FROM runs ORDER BY run_id").toArray();
    return rows.map(({ command }) => (JSON.parse(command) as { principal?: unknown }).principal);
  });
}

it("R123 every create route stores the owner and the role of the key, whatever the body claims", async () => {
  const claim = { config: { configurable: { principal: { owner: "eve", role: "admin" }, role: "admin" } } };
  const threadId = await newThread();
  await streamRun(threadId, asking("@ say one", claim));
  await sendJson("POST", `/threads/${threadId}/runs/wait`, asking("@ say two", claim));
  const run = await sendJson<{ run_id: string }>("POST", `/threads/${threadId}/runs`, asking("@ say three", claim));
  await send("GET", `/threads/${threadId}/runs/${run.run_id}/join`);
  const alice = { owner: "alice", role: "user" };
  expect(await storedPrincipals("alice", threadId)).toEqual([alice, alice, alice]);
  const shown = await (await send("GET", `/threads/${threadId}/runs/${run.run_id}`)).text();
  expect(shown).not.toContain('"owner":"alice"');
});

describe("a run's principal", () => {
  it.each([
    { what: "the lead", script: LEAD },
    { what: "a child", script: CHILD },
  ])("R123 binds $what: a user is denied what an administrator may", async ({ script }) => {
    await withWakes(async (thread) => {
      expect(await answerTo(thread, script, { role: "user" })).toContain("the role 'user' may not use it");
    });
    await withWakes(async (thread) => {
      expect(await answerTo(thread, script, { role: "admin" })).toContain("seen");
    });
  });

  it("R123 is nobody's to claim: config, context and metadata change nothing, and without one the least is allowed", async () => {
    const claim = { principal: { owner: "alice", role: "admin" }, role: "admin", user_role: "admin" };
    const body = { config: { configurable: claim, metadata: claim }, context: claim, metadata: claim };
    for (const from of [{ role: "user", body } as const, { body }]) {
      await withWakes(async (thread) => {
        expect(await answerTo(thread, LEAD, from)).toContain("the role 'user' may not use it");
      });
    }
  });

  it.each(["user", "admin"] as const)("R123 survives a crash: the next wake judges as %s again", async (role) => {
    await withWakes(async (thread) => {
      const before = probes(never);
      const first = await thread.create(before.options);
      const script = "@ call gate {}\n@ call probe {}\n@ say {{result:2}}";
      const { runId } = await start(first, script, { role });
      await eventually(
        () => before.started.length,
        (count) => count === 1,
      );
      const second = await thread.wake(probes().options);
      await second.context.live.get(runId)!.done;
      expect(await answerOf(second)).toContain(role === "admin" ? "seen" : "the role 'user' may not use it");
      expect(second.context.runs.find(runId)!.command.principal).toEqual({ owner: "alice", role });
    });
  });

  it("R123 goes with the batch: a model's batch_task stores the run's role, an API create the key's", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create(probes().options);
      const script =
        '@ call batch_task {"title":"t","items":[{"key":"a","prompt":"p"}],"subagent_type":"bash"}\n@ say ok';
      const { runId } = await start(runtime, script, { role: "admin" });
      await runtime.context.live.get(runId)!.done;
      const draft = { title: "u", subagent_type: "bash", items: [{ key: "a", prompt: "p" }] };
      const created = await runtime.batches.create(draft, { submissionKey: null, role: "user" });
      expect(created.ok).toBe(true);
      const rows = await env.DB.prepare(
        `SELECT b.title, d.submitter_role FROM batches b JOIN batch_definitions d ON d.batch_id = b.batch_id
         WHERE b.thread_id = ?1 ORDER BY b.title`,
      )
        .bind(thread.threadId)
        .all();
      expect(rows.results).toEqual([
        { title: "t", submitter_role: "admin" },
        { title: "u", submitter_role: "user" },
      ]);
    });
  });
});
