import { abortAllDurableObjects } from "cloudflare:test";
import { expect, it } from "vitest";
import { asking, newThread, sendJson, streamRun } from "../../support/http.ts";

interface Message {
  readonly id: string;
  readonly type: string;
  readonly content: string;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly { readonly id: string }[];
}
interface Values {
  readonly messages: readonly Message[];
}

const CALLS = 6;

/** `seconds(index)` is how long the call of that index takes. */
function sixCalls(seconds: (index: number) => number): string {
  const calls = Array.from({ length: CALLS }, (_, index) => {
    const command = `sleep ${seconds(index)}; echo result-${index}`;
    return `@ & call bash ${JSON.stringify({ command })}`;
  });
  return [...calls, "@ say done"].join("\n");
}

const resultsOf = (values: Values) => values.messages.filter((message) => message.type === "tool");
const callIdsOf = (values: Values) =>
  values.messages.flatMap((message) => message.tool_calls ?? []).map(({ id }) => id);
const answeredIds = (messages: readonly Message[]) => messages.map((message) => message.tool_call_id!);

it("six parallel tool results stand in the order of their calls live, in state and after the object died, though the last one finished first", async () => {
  const threadId = await newThread();
  const frames = await streamRun(
    threadId,
    asking(
      sixCalls((index) => (CALLS - 1 - index) * 0.06),
      { stream_mode: ["values", "updates"] },
    ),
  );
  const values = frames.filter((frame) => frame.event === "values").map((frame) => frame.data as Values);
  const final = values.at(-1)!;
  const calls = callIdsOf(final);
  expect(calls).toHaveLength(CALLS);
  expect(resultsOf(final).map((message) => message.content.split("\n")[0])).toEqual(
    calls.map((_, index) => `result-${index}`),
  );
  // No state a client ever saw had another order.
  for (const seen of values) expect(answeredIds(resultsOf(seen))).toEqual(calls.slice(0, resultsOf(seen).length));
  // Updates tell what finished when it finished: here from the last call to the first.
  const updates = frames
    .filter((frame) => frame.event === "updates")
    .flatMap((frame) => (frame.data as { tools?: Values }).tools?.messages ?? []);
  expect(answeredIds(updates).toSorted()).toEqual(calls.toSorted());

  await abortAllDurableObjects();
  const state = await sendJson<{ values: Values }>("GET", `/threads/${threadId}/state`);
  expect(state.values.messages.map(({ id }) => id)).toEqual(final.messages.map(({ id }) => id));
  expect(answeredIds(resultsOf(state.values))).toEqual(calls);
});

it("six parallel results that finish together come live, in updates frames, in the order of their calls", async () => {
  const threadId = await newThread();
  const frames = await streamRun(
    threadId,
    asking(
      sixCalls(() => 0),
      { stream_mode: ["updates"] },
    ),
  );
  const updates = frames
    .filter((frame) => frame.event === "updates")
    .map((frame) => frame.data as Record<string, Values>);
  const calls = updates.flatMap((update) => (update["model"] === undefined ? [] : callIdsOf(update["model"])));
  const live = updates.flatMap((update) => update["tools"]?.messages ?? []);
  expect(answeredIds(live)).toEqual(calls);
  const state = await sendJson<{ values: Values }>("GET", `/threads/${threadId}/state`);
  expect(resultsOf(state.values).map(({ id }) => id)).toEqual(live.map(({ id }) => id));
});
