// @vitest-environment jsdom
/** LangGraph's React hook, unmodified, on a page: submit, stop, rejoin after a reload, branch, interrupt. */
import type { Interrupt } from "@langchain/langgraph-sdk";
import { cleanup } from "@testing-library/react";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ChatPage, type ChatPageOptions, say } from "../support/chat-page.ts";
import { DeputyServer, eventually, WITH_TEST_GRAPHS } from "../support/deputy-server.ts";
import { LEAD, type LeadValues, sdkClient } from "../support/sdk.ts";

const deputy = new DeputyServer({ config: WITH_TEST_GRAPHS });
const pages: ChatPage[] = [];

beforeAll(() => deputy.start());
afterAll(() => deputy.close());
afterEach(() => {
  for (const page of pages.splice(0)) page.leave();
  cleanup();
});

const WORDS = Array.from({ length: 80 }, (_, index) => `word${index}`).join(" ");
/** Some seconds; what is cut short is not waited for. */
const SLOW = `@ delay 50\n@ say ${WORDS}`;

function open(options: Partial<ChatPageOptions> = {}): ChatPage {
  const page = new ChatPage({ apiUrl: deputy.url, assistantId: LEAD, ...options });
  pages.push(page);
  return page;
}

const serverText = async (threadId: string) => {
  const { values } = await sdkClient(deputy.url).threads.getState<LeadValues>(threadId);
  return values.messages.map(({ content }) => content);
};

/** Until some of the answer is drawn, and not all of it. */
async function partWay(page: ChatPage): Promise<void> {
  const { texts } = await page.until((shown) => /^word0 word1\b/.test(shown.texts.at(-1) ?? ""));
  expect(texts.at(-1)).not.toBe(WORDS);
}

const path = (call: string) =>
  call.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, ":id").replace(/checkpoint_id=.*/, "checkpoint_id=:id");
const calls = (page: ChatPage) => page.asked.map(({ call }) => path(call));

describe("submit", () => {
  it("makes a thread, draws the answer as it grows, and ends with what the server has", async () => {
    const page = open();
    const { texts, error, interrupt } = await page.submit(say("@ delay 20\n@ say one two three four five six"));
    expect(texts).toEqual(["@ delay 20\n@ say one two three four five six", "one two three four five six"]);
    expect([error, interrupt]).toEqual([undefined, undefined]);
    expect(texts).toEqual(await serverText(page.threadId!));
    const growing = page.drawn.filter((text) => /^one\b/.test(text));
    expect(new Set(growing).size).toBeGreaterThan(2);
    for (const [index, text] of growing.slice(1).entries()) expect(text.startsWith(growing[index]!)).toBe(true);
    // The last one is the SDK's own: a stream that closes without a word might have been cut.
    expect(calls(page)).toEqual(["POST /threads", "POST /threads/:id/runs/stream", "GET /threads/:id/runs/:id"]);
    expect(page.asked[1]!.body["stream_mode"]).toEqual(["messages-tuple", "values"]);
    const again = await page.submit(say("@ say more"));
    expect(again.texts.slice(2)).toEqual(["@ say more", "more"]);
  });

  it("shows why a run failed", async () => {
    const page = open({ assistantId: "failing" });
    const { error } = await page.submit({});
    expect(error).toMatchObject({ name: "OutOfPaperError", message: "tray 2 is empty" });
  });
});

describe("stop", () => {
  it.each([true, false])(
    "ends the run on the server and shows no error; reconnectOnMount %s",
    async (reconnectOnMount) => {
      const page = open({ reconnectOnMount });
      await page.begin(SLOW);
      await partWay(page);
      await page.stop();
      await page.until(({ isLoading }) => !isLoading);
      const client = sdkClient(deputy.url);
      const [run] = await eventually(
        () => client.runs.list(page.threadId!),
        ([seen]) => seen!.status === "interrupted",
        60_000,
      );
      expect(calls(page).includes("POST /threads/:id/runs/:id/cancel?wait=0&action=interrupt")).toBe(reconnectOnMount);
      expect(run!.status).toBe("interrupted");
      expect(page.shown.error).toBeUndefined();
      const next = await page.submit(say("@ say usable"));
      expect(next.error).toBeUndefined();
      expect(next.texts.at(-1)).toBe("usable");
      expect(next.texts).toEqual(await serverText(page.threadId!));
    },
  );
});

describe("a page that is loaded again", () => {
  it("rejoins the run under way from its start, and shows each message once", async () => {
    const left = open({ reconnectOnMount: true });
    await left.begin(SLOW);
    await partWay(left);
    const threadId = left.threadId!;
    left.leave();
    const page = open({ reconnectOnMount: true, threadId, fetchStateHistory: true });
    await page.until(({ isLoading, texts }) => !isLoading && texts.at(-1) === WORDS);
    expect(page.shown.texts).toEqual([SLOW, WORDS]);
    expect(await serverText(threadId)).toEqual([SLOW, WORDS]);
    const [rejoined] = page.asked.filter(({ call }) => call.includes("/runs/"));
    expect(path(rejoined!.call)).toMatch(/^GET \/threads\/:id\/runs\/:id\/stream\?cancel_on_disconnect=0/);
    expect(rejoined!.lastEventId).toBe("-1");
    // The run ended: a third load has nothing to rejoin.
    page.leave();
    const third = open({ reconnectOnMount: true, threadId, fetchStateHistory: true });
    await third.until(({ isLoading, texts }) => !isLoading && texts.length === 2);
    expect(calls(third)).toEqual(["POST /threads/:id/history"]);
  });

  it("shows the thread's messages without history, from its state", async () => {
    const first = open();
    await first.submit(say("@ say kept"));
    const page = open({ threadId: first.threadId! });
    await page.until(({ texts }) => texts.length === 2);
    expect(page.shown.texts).toEqual(["@ say kept", "kept"]);
    expect(calls(page)).toEqual(["GET /threads/:id/state"]);
  });
});

describe("branches", () => {
  it("edits an earlier message, switches between what came of it, and goes on from the chosen one", async () => {
    // With fewer states than there are the hook has no root to branch from.
    const page = open({ fetchStateHistory: { limit: 100 } });
    await page.submit(say("@ say first"));
    await page.submit(say("@ say second"));
    await page.until(({ texts, stream }) => texts.length === 4 && stream.history.length > 0);
    const edited = page.shown.stream.messages[2]!;
    const before = page.shown.stream.getMessagesMetadata(edited)?.firstSeenState?.parent_checkpoint;
    expect(before?.checkpoint_id).toBeTruthy();
    await page.submit(say("@ say instead"), { checkpoint: before! });
    const branched = ["@ say first", "first", "@ say instead", "instead"];
    await page.until(({ texts }) => texts.join() === branched.join());
    const shown = page.shown.stream.messages[2]!;
    const { branch, branchOptions } = page.shown.stream.getMessagesMetadata(shown)!;
    expect(branchOptions).toHaveLength(2);
    const other = branchOptions!.find((option) => option !== branch)!;
    expect((await page.choose(other)).texts).toEqual(["@ say first", "first", "@ say second", "second"]);
    // What is submitted now belongs to the branch that is shown; the hook itself goes back to the branch that was made last.
    await page.submit(say("@ say third"));
    const older = ["@ say first", "first", "@ say second", "second", "@ say third", "third"];
    expect(await serverText(page.threadId!)).toEqual(older);
  });
});

describe("interrupt", () => {
  it("shows a question, also after a reload, and goes on with the answer", async () => {
    const asking = open({ assistantId: "chatting" });
    const asked = await asking.submit({ messages: [], gate: crypto.randomUUID() });
    expect(asked.interrupt).toMatchObject({ value: "well?" });
    const page = open({ assistantId: "chatting", threadId: asking.threadId!, fetchStateHistory: true });
    const shown = await page.until(({ interrupt }) => interrupt !== undefined);
    expect(shown.interrupt).toMatchObject({ value: "well?", id: (asked.interrupt as Interrupt).id });
    await page.submit(null, { command: { resume: "fine" } });
    await page.until(({ interrupt }) => interrupt === undefined);
    expect(page.shown.texts.toSorted()).toEqual(["an answer", "as a dict", "hello", "you said fine"]);
    expect(page.shown.error).toBeUndefined();
  });

  it("shows several questions, and takes their answers by id", async () => {
    const page = open({ assistantId: "fan_out", fetchStateHistory: true });
    const { interrupt } = await page.submit({
      messages: [],
      gate: crypto.randomUUID(),
      items: ["ask-a", "b", "ask-c"],
    });
    const questions = interrupt as Interrupt<{ item: string }>[];
    expect(questions.map(({ value }) => value!.item).toSorted()).toEqual(["ask-a", "ask-c"]);
    const resume = Object.fromEntries(questions.map(({ id, value }) => [id!, value!.item.toUpperCase()]));
    await page.submit(null, { command: { resume } });
    const { stream } = await page.until((shown) => shown.interrupt === undefined);
    expect((stream.values["done"] as string[]).toSorted()).toEqual(["ask-a=ASK-A", "ask-c=ASK-C", "b", "joined 3"]);
  });

  it("shows a breakpoint, and passes it", async () => {
    const page = open({ assistantId: "versioned", fetchStateHistory: true });
    await page.submit({ messages: [], gate: crypto.randomUUID() }, { interruptBefore: ["second"] });
    const stopped = await page.until(({ interrupt }) => interrupt !== undefined);
    expect(stopped.stream.values).toMatchObject({ by: ["two"] });
    await page.submit(null);
    const { stream } = await page.until(({ interrupt }) => interrupt === undefined);
    expect(stream.values).toMatchObject({ by: ["two", "two"] });
  });
});
