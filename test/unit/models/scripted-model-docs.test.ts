import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Bash } from "just-bash";
import { expect, it } from "vitest";
import { withAttempts } from "../../../src/agent/models/attempts.ts";
import { createScriptedModel } from "../../../src/agent/models/scripted.ts";
import { parseDeputyConfig } from "../../../src/config.ts";
import { toRetryPolicy } from "../../../src/domain/model-errors/retry-policy.ts";

const source = readFileSync(join(import.meta.dirname, "../../../docs/scripted-model.md"), "utf8");
const examples = [...source.matchAll(/```text\n([\s\S]*?)```/g)].map((match) => match[1] ?? "");

let ids = 0;
const waited: number[] = [];
const policy = toRetryPolicy(parseDeputyConfig({}).llm_call);
const sleep = (ms: number) => Promise.resolve(void waited.push(ms));
const model = createScriptedModel({ newId: () => `m-${(ids += 1)}`, random: Math.random, modelIdleMs: 20, sleep });

/** An agent loop around the model: a real shell, a child that is the same loop, a batch that only has an id. */
async function run(prompt: string): Promise<string> {
  const messages: BaseMessage[] = [new HumanMessage({ id: `h-${(ids += 1)}`, content: prompt })];
  for (;;) {
    const attempt = () => model.generate({ messages, tools: [] }, {});
    const turn = await withAttempts(attempt, undefined, { policy, sleep, random: () => 0 });
    if (!turn.ok) throw turn.error.failure;
    const answer = turn.value;
    messages.push(answer);
    if (!answer.tool_calls?.length) return answer.text;
    for (const call of answer.tool_calls) {
      messages.push(new ToolMessage({ tool_call_id: call.id ?? "", content: await runTool(call.name, call.args) }));
    }
  }
}

async function runTool(name: string, args: Record<string, unknown>): Promise<string> {
  if (name === "task") return `Task Succeeded. Result: ${await run(args.prompt as string)}`;
  if (name === "bash") return (await new Bash().exec(args.command as string)).stdout.trim();
  if (name === "batch_status") return JSON.stringify({ batch_id: args.batch_id, status: "completed" });
  const items = args.items as { prompt: string }[];
  expect(await Promise.all(items.map((item) => run(item.prompt)))).toEqual(["item 1", "item 2", "item 3"]);
  return JSON.stringify({ batch_id: "b-1", status: "running" });
}

it("documents examples that do what their text says", async () => {
  expect(examples.length).toBe(4);
  expect(await Promise.all(examples.map(run))).toEqual([
    "The file has 3 lines.",
    "North sold 42, south sold 7.",
    "Batch b-1 is completed.",
    "done at last",
  ]);
  expect(waited.filter((ms) => ms === 1_000).length).toBe(2);
});
