/** The functional API: an entrypoint whose tasks are done once, and which remembers the run before. */
import { entrypoint, getPreviousState, interrupt, task } from "@langchain/langgraph";
import { passGate } from "./gates.ts";

interface Input {
  readonly gate: string;
  readonly word: string;
  readonly ask?: boolean;
}

const double = task("double", async ({ gate, word }: Input) => {
  await passGate(`${gate}/double`);
  return `${word}${word}`;
});

const finish = task("finish", async ({ gate, word }: Input) => {
  await passGate(`${gate}/finish`);
  return `${word}.`;
});

export const functional = entrypoint("functional", async (input: Input) => {
  const before = getPreviousState<{ result: string }>()?.result ?? null;
  const doubled = await double(input);
  const answer = input.ask === true ? String(interrupt({ question: "and?" })) : "";
  const result = await finish({ ...input, word: `${doubled}${answer}` });
  return entrypoint.final({ value: { result, before }, save: { result } });
});
