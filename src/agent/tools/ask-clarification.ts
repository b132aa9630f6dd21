/**
 * `ask_clarification`: the lead asks the user and its turn ends; the user's next message is the answer. Nothing waits
 * meanwhile: unlike `interrupt()` it leaves no question open in the graph.
 * A child has nobody to ask: where its definition leaves it the tool, a call ends the child with that reason.
 */
import { z } from "zod";
import { HumanInputError } from "../graph/human-input.ts";
import { ENDS_TURN_KEY } from "../graph/pending-calls.ts";
import type { Tool } from "./tool.ts";

export const ASK_CLARIFICATION = "ask_clarification";

/** A question is read at a glance, its options are chosen from. */
const QUESTION_CHARS_MAX = 4_000;
const OPTION_CHARS_MAX = 500;
const OPTIONS_MAX = 10;

const KINDS = ["missing_info", "ambiguous_requirement", "approach_choice", "risk_confirmation", "suggestion"] as const;

const parameters = z.object({
  question: z.string().min(1).max(QUESTION_CHARS_MAX).describe("The one thing you need to know."),
  clarification_type: z.enum(KINDS).describe("Why you ask."),
  context: z.string().max(QUESTION_CHARS_MAX).optional().describe("What led to the question, when it is not obvious."),
  options: z
    .array(z.string().min(1).max(OPTION_CHARS_MAX))
    .max(OPTIONS_MAX)
    .optional()
    .describe("Answers to choose from."),
});

const shared = {
  name: ASK_CLARIFICATION,
  description: [
    "Asks the user and ends your turn; the answer comes with the user's next message. Use it when you cannot go on sensibly:",
    "something needed is missing, the request can be read in several ways, the approach is the user's to choose, or the next step is risky.",
    "Ask before you work, one question at a time. Calls made beside it still run.",
  ].join(" "),
  parameters,
  recovery: "safe",
} as const;

/** The lead's. */
export const askClarificationTool: Tool = {
  ...shared,
  async execute(args) {
    return {
      status: "success",
      content: toText(parameters.parse(args)),
      additionalKwargs: { [ENDS_TURN_KEY]: true },
    };
  },
};

/** A child's, and a batch item's. */
export const askNobodyTool: Tool = {
  ...shared,
  execute: async () => {
    throw new HumanInputError();
  },
};

function toText({ question, context, options = [] }: z.output<typeof parameters>): string {
  const choices = options.map((option, index) => `${index + 1}. ${option}`);
  return [context, question, choices.join("\n")].filter((part) => part !== undefined && part !== "").join("\n\n");
}
