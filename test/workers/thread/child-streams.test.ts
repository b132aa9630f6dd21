/**
 * What a client's stream shows of children, over HTTP with every stream mode (R131, R132): a lead with two parallel
 * children, one of which delegates itself. Each child's texts and tool outputs are marked; a marker is computed, so that it
 * stands nowhere before its child made it.
 */
import { env } from "cloudflare:test";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { D1SubagentDefinitions } from "../../../src/platform/d1/subagent-definitions.ts";
import { asking, type Frame, newThread, streamRun } from "../../support/http.ts";
import { managedDefinition } from "../../support/managed.ts";

const definitions = new D1SubagentDefinitions(env.DB);

beforeAll(async () => {
  const definition = managedDefinition({ tools: ["task", "bash"], disallowedTools: [] });
  await definitions.systemCreate({ name: "boss", enabled: true, definition }, { by: "root", now: 1 });
});
afterAll(() => definitions.systemDelete("boss"));

/** `TOOL-42A` is a tool's output, `MIDDLE-TOOL-42A` a text beside a further call, `ANSWER-TOOL-42A` the child's result. */
const child = (name: string) => [
  `@ call bash {"command": "echo TOOL-$((40 + 2))${name}"}`,
  `@ & say MIDDLE-{{result:1:line 1}}`,
  `@ & call bash {"command": "echo SECOND-$((1 + 1))${name}"}`,
  `@ say ANSWER-{{result:1:line 1}}`,
];

const SCRIPT = [
  "@ & delegate general-purpose :: first :: <<'FIRST'",
  ...child("A"),
  "FIRST",
  "@ & delegate boss :: second :: <<'SECOND'",
  "@ delegate general-purpose :: third :: <<'THIRD'",
  ...child("C"),
  "THIRD",
  '@ call bash {"command": "echo SECOND-$((1 + 1))B"}',
  "@ say BOSS {{result:2:line 1}}",
  "SECOND",
  "@ say LEAD {{result:1:line 1}} {{result:2:line 1}}",
].join("\n");

const INSIDE = ["MIDDLE-TOOL-42A", "SECOND-2A", "MIDDLE-TOOL-42C", "SECOND-2C", "ANSWER-TOOL-42C", "SECOND-2B"];
const MODES = ["values", "updates", "messages-tuple", "custom"];

function run(more: Record<string, unknown>): Promise<Frame[]> {
  return newThread().then((threadId) => streamRun(threadId, asking(SCRIPT, { stream_mode: MODES, ...more })));
}

const modeOf = ({ event }: Frame) => event.split("|")[0]!;
const pathOf = ({ event }: Frame) => event.split("|").slice(1);
const isCustom = (frame: Frame) => modeOf(frame) === "custom";
const holding = (frames: readonly Frame[], marker: string) =>
  frames.filter(({ data }) => JSON.stringify(data).includes(marker));
type Event = Record<string, unknown> & { readonly type: string; readonly task_id: string };
const eventsOf = (frames: readonly Frame[]) => frames.filter(isCustom).map(({ data }) => data as Event);
const customOf = (frames: readonly Frame[], taskId: string) =>
  frames.filter((frame) => isCustom(frame) && (frame.data as Event).task_id === taskId);
type Message = { readonly type: string; readonly content: string; readonly name?: string };
const messagesOf = (frames: readonly Frame[]) =>
  frames
    .filter((frame) => modeOf(frame) === "messages")
    .map(({ data }) => (data as [Message, Record<string, unknown>])[0]);

describe("a client's stream of a run with children", () => {
  it("R131 R132 without subgraphs shows of a child its task events and the result of its call, nothing else", async () => {
    const frames = await run({});
    expect(frames.every((frame) => pathOf(frame).length === 0)).toBe(true);
    for (const marker of INSIDE) {
      const modes = holding(frames, marker).map(modeOf);
      // SECOND-2B is the result of the boss, so its call's result and the lead's answer hold it.
      if (marker === "SECOND-2B") continue;
      expect([marker, [...new Set(modes)]]).toEqual([marker, ["custom"]]);
    }
    expect([...new Set(eventsOf(frames).map(({ type }) => type))].toSorted()).toEqual([
      "task_completed",
      "task_running",
      "task_started",
    ]);
    const messages = messagesOf(frames);
    expect(messages.filter(({ type }) => type === "tool").map(({ name }) => name)).toEqual(["task", "task"]);
    const spoken = messages
      .filter(({ type }) => type !== "tool")
      .map(({ content }) => content)
      .join("");
    expect(spoken).toBe("LEAD Task Succeeded. Result: ANSWER-TOOL-42A Task Succeeded. Result: BOSS SECOND-2B");
  });

  it("R131 R132 with subgraphs shows a child's tokens, tool frames and messages under its namespace only", async () => {
    const frames = await run({ stream_subgraphs: true });
    const inside = frames.filter((frame) => pathOf(frame).length > 0);
    for (const marker of INSIDE) {
      const shown = holding(frames, marker).filter((frame) => !isCustom(frame));
      const under = shown.filter((frame) => pathOf(frame).length > 0);
      expect([marker, [...new Set(under.map(modeOf))].toSorted()]).toEqual([marker, ["messages", "updates", "values"]]);
      const roots = marker === "SECOND-2B" ? ["messages", "updates", "values"] : [];
      expect([...new Set(shown.filter((frame) => !under.includes(frame)).map(modeOf))].toSorted()).toEqual(roots);
    }
    const places = (marker: string) =>
      new Set(
        holding(inside, marker)
          .filter((f) => !isCustom(f))
          .map((f) => pathOf(f).length),
      );
    expect([...places("SECOND-2A")]).toEqual([1]);
    expect([...places("SECOND-2C")]).toEqual([2]);
    const tokens = inside.filter((frame) => modeOf(frame) === "messages").map(({ data }) => data as [Message, object]);
    const first = tokens.filter(([, metadata]) => JSON.stringify(metadata).includes('"subagent:general-purpose"'));
    expect(first.map(([{ content }]) => content.trim())).toEqual(
      expect.arrayContaining(["MIDDLE-TOOL-42A", "ANSWER-TOOL-42A", "ANSWER-TOOL-42C"]),
    );
    const root = messagesOf(frames.filter((frame) => pathOf(frame).length === 0));
    expect(
      root
        .filter(({ type }) => type !== "tool")
        .map(({ content }) => content)
        .join(""),
    ).toMatch(/^LEAD /);
  });

  it("R62 R85 tells each task with its model, its steps under its own id, once and in order, with or without subgraphs", async () => {
    for (const more of [{ stream_subgraphs: false }, { stream_subgraphs: true }]) {
      const frames = await run(more);
      const events = eventsOf(frames);
      const ids = [...new Set(events.map(({ task_id }) => task_id))];
      const levels = ids.map((id) => [...new Set(customOf(frames, id).map((frame) => pathOf(frame).length))]);
      // Who delegated tells: the boss's delegation stands under the boss's namespace.
      expect(levels.flat().toSorted((a, b) => a - b)).toEqual(more.stream_subgraphs ? [0, 0, 1] : [0, 0, 0]);
      for (const id of ids) {
        const own = events.filter(({ task_id }) => task_id === id);
        expect(own.map(({ model_name }) => model_name)).toEqual(own.map(() => "scripted"));
        expect([own[0]!.type, own.at(-1)!.type]).toEqual(["task_started", "task_completed"]);
        const steps = own.slice(1, -1);
        expect(steps.map(({ type, message_index }) => [type, message_index])).toEqual(
          steps.map((_, index) => ["task_running", index + 1]),
        );
      }
      const owner = (marker: string) =>
        new Set(
          events
            .filter(({ type }) => type === "task_running")
            .filter((e) => JSON.stringify(e).includes(marker))
            .map((e) => e.task_id),
        );
      expect([...owner("SECOND-2A"), ...owner("SECOND-2C")].toSorted()).toHaveLength(2);
    }
  });
});
