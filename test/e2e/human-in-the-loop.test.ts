/** The examples of docs/human-in-the-loop.md as a reader would run them, the server killed between question and answer. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { DeputyServer } from "../support/deputy-server.ts";

const run = promisify(execFile);
const page = readFileSync("docs/human-in-the-loop.md", "utf8");
const [approvalAsked, approvalAnswered, breakpoint] = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(
  ([, commands = ""]) => commands,
);

const server = new DeputyServer({ env: { DEPUTY_OVERRIDES: JSON.stringify({ tools: { approval: { bash: {} } } }) } });
beforeAll(() => server.start());
afterAll(() => server.close());

/** What each command printed; bodies of `wait` are preceded by the whitespace that keeps them alive. */
async function shell(commands: string): Promise<Record<string, unknown>[]> {
  const separated = commands.replaceAll("curl -s ", "echo ---; curl -sS ");
  const { stdout } = await run("bash", ["-euc", separated], { env: { ...process.env, BASE: server.url } });
  return stdout
    .split("---\n")
    .filter((part) => part.trim() !== "")
    .map((part) => JSON.parse(part) as Record<string, unknown>);
}

it("an approval is asked for, survives a SIGKILL, and is answered", { timeout: 180_000 }, async () => {
  const [, asked] = await shell(approvalAsked!);
  expect(asked?.["__interrupt__"]).toMatchObject([
    { value: { actionRequests: [{ name: "bash" }], reviewConfigs: [{ actionName: "bash" }] } },
  ]);
  await server.kill();
  await server.start();
  const [answered] = await shell(approvalAnswered!);
  const messages = answered?.["messages"] as { type: string; content: string }[];
  expect(messages.map(({ type }) => type)).toEqual(["human", "ai", "tool", "ai"]);
  expect(messages.at(-1)?.content).toContain("done");
});

it("a breakpoint stops the run before its tools, and a run without input goes on", { timeout: 60_000 }, async () => {
  const [, stopped, on] = await shell(breakpoint!);
  expect(stopped?.["__interrupt__"]).toEqual([]);
  expect((on?.["messages"] as { content: string }[] | undefined)?.at(-1)?.content).toBe("went on");
});
