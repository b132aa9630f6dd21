/** What the benches ask the scripted model. */

const ANSWER_TOKENS = 200;

/** One human message that makes the model answer once, with 200 tokens. */
export const ONE_TURN_PROMPT = `@ say ${Array.from({ length: ANSWER_TOKENS }, (_, place) => `w${place}`).join(" ")}`;
