/** docs/subagents.md against the source: whoever writes a provider or a caller finds every name of the seam there. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const read = (path: string): string => readFileSync(path, "utf8");
const page = read("docs/subagents.md");

/** Names of one file that match, each once. */
const namesIn = (file: string, pattern: RegExp): string[] => [
  ...new Set([...read(`src/agent/subagents/${file}`).matchAll(pattern)].map(([, name = ""]) => name)),
];

/** Fields of an interface, without those of the interfaces in it. */
const fieldsOf = (name: string): string[] => {
  const [, body = ""] =
    new RegExp(`export interface ${name}[^{]*\\{\n([^]*?)\n\\}`).exec(read("src/agent/subagents/provider.ts")) ?? [];
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??[:(]/gm)].map(([, field = ""]) => field);
};

test.each([
  ["error codes", namesIn("subagent-error.ts", /\| "([A-Z_]+)"/g), 6],
  ["events", namesIn("subagent-service.ts", /type: "(subagent\/[a-z-]+)"/g), 4],
  ["stop reasons", namesIn("provider.ts", /^ {2}\| "([a-z-]+)"$/gm), 6],
  ["fields of a request", fieldsOf("SubagentRequest"), 11],
  ["fields of a result", fieldsOf("SubagentResult"), 4],
  ["members of a run", fieldsOf("SubagentRun"), 6],
  ["capabilities", fieldsOf("SubagentCapabilities"), 4],
])("R160 the page of the seam names all its %s", (_what, names, count) => {
  expect(names).toHaveLength(count);
  expect(names.filter((name) => !page.includes(`\`${name}`))).toEqual([]);
});

test("R160 the events that clients see are on the page as well", () => {
  const types = [...read("src/domain/delegation/task-events.ts").matchAll(/"(task_[a-z_]+)"/g)].map(
    ([, type = ""]) => type,
  );
  expect(types.length).toBeGreaterThan(5);
  expect(types.filter((type) => !page.includes(`\`${type}\``))).toEqual([]);
});
