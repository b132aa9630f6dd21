import { env } from "cloudflare:test";
import type { BaseMessage } from "@langchain/core/messages";
import { expect, it } from "vitest";
import type { Tool } from "../../../src/agent/tools/tool.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

const config = {
  subagents: {
    custom_agents: { twin: { description: "continues", system_prompt: "You are a twin.", provider: "fork" as const } },
  },
};
const SCRIPT =
  "@ delegate twin :: look :: <<'CHILD'\n@ call probe {}\n@ call probe {}\n@ say child saw {{result:2}}\nCHILD\n@ say {{result:1}}";

const kinds = (messages: readonly BaseMessage[]) =>
  messages.map((message) => `${message.type}${message.text.startsWith("EARLIER") ? " EARLIER" : ""}`).join(", ");

async function answerOf(runtime: ThreadRuntime): Promise<string> {
  const { messages } = JSON.parse(await runtime.context.graphs.renderState(undefined)) as {
    messages: { content: string }[];
  };
  return messages.at(-1)!.content;
}

it("P1 P2 a fork killed at its second call goes on in the next wake with the same seed, and repeats no call", async () => {
  await withWakes(async (thread) => {
    const seen: string[] = [];
    const reached = Promise.withResolvers<void>();
    const probe = (isDying: boolean): Tool =>
      plainTool("probe", async (_args, runtime) => {
        seen.push(kinds(runtime.state().messages));
        if (isDying && seen.length === 2) {
          reached.resolve();
          await new Promise(() => {});
        }
        return succeeded(`call ${seen.length}`);
      });
    const first = await thread.create({ tools: [probe(true)], config });
    const earlier = await startRun(first, "@ call ls {}\n@ say EARLIER");
    await first.context.live.get(earlier.runId)!.done;
    const { runId } = await startRun(first, SCRIPT);
    await reached.promise;
    const second = await thread.wake({ tools: [probe(false)], config });
    await second.context.live.get(runId)!.done;
    expect(await answerOf(second)).toContain("child saw call 3");
    const seed = "human, ai, tool, ai EARLIER, human";
    expect(seen).toEqual([`${seed}, ai`, `${seed}, ai, tool, ai`, `${seed}, ai, tool, ai`]);
  });
});

it("P3 R115 the log tells a fork's own steps, not the turns it started from, and its checkpoints go with its result", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create({ tools: [plainTool("probe", () => succeeded("seen"))], config });
    const earlier = await startRun(runtime, "@ call ls {}\n@ say EARLIER");
    await runtime.context.live.get(earlier.runId)!.done;
    const { runId } = await startRun(runtime, SCRIPT);
    await runtime.context.live.get(runId)!.done;
    const steps = await eventually(
      async () => {
        const query = "SELECT event_type FROM run_events WHERE run_id = ? AND category = 'subagent' ORDER BY seq";
        const { results } = await env.DB.prepare(query).bind(runId).all<{ event_type: string }>();
        return results.map((row) => row.event_type.replace("subagent.", ""));
      },
      (rows) => rows.includes("end"),
    );
    expect(steps).toEqual(["start", "step", "step", "step", "step", "step", "end"]);
    const left = thread.storage.sql.exec("SELECT DISTINCT checkpoint_ns FROM checkpoints").toArray();
    expect(left).toEqual([{ checkpoint_ns: "" }]);
  });
});
