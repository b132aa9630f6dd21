import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { Annotation, StateGraph } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { CALL_ID_PATTERN } from "../../../src/agent/models/call-id.ts";
import { createScriptedModel } from "../../../src/agent/models/scripted.ts";

let ids = 0;
const model = createScriptedModel({ newId: () => `m-${(ids += 1)}`, random: Math.random, modelIdleMs: 20 });

const ask = (prompt: string, since: BaseMessage[] = [], config = {}) =>
  model.generate(
    { messages: [new SystemMessage("be brief"), new HumanMessage({ content: prompt, id: "h" }), ...since], tools: [] },
    config,
  );

/** The turns of a script, with `results` as the outputs of its calls in order. */
async function turnsOf(prompt: string, results: string[] = []): Promise<AIMessage[]> {
  const turns: AIMessage[] = [];
  const since: BaseMessage[] = [];
  const left = [...results];
  for (;;) {
    const answer = await ask(prompt, since);
    turns.push(answer);
    const calls = answer.tool_calls ?? [];
    if (calls.length === 0) return turns;
    const outputs = calls.map((call) => new ToolMessage({ content: left.shift() ?? "-", tool_call_id: call.id ?? "" }));
    since.push(answer, ...outputs);
  }
}

const fenced = (...lines: string[]) => `Please:\n\`\`\`script\n${lines.join("\n")}\n\`\`\`\nThanks.`;
const last = (turns: AIMessage[]) => turns.at(-1)?.text;

describe("without a script", () => {
  it("says that it is scripted and quotes the prompt; it never answers", async () => {
    const answer = await ask("What is 2 + 2?\nExactly.");
    expect(answer.text).toContain("has no intelligence");
    expect(answer.text.split("\n").slice(-2)).toEqual(["> What is 2 + 2?", "> Exactly."]);
    expect(answer.text).not.toContain("4");
  });

  it("quotes the last tool output behind the end of a script", async () => {
    expect(last(await turnsOf(fenced('call bash {"command":"x"}'), ["from the tool"]))).toBe("from the tool");
  });
});

describe("steps", () => {
  it("takes one step a turn, in a fence or in lines that start with an at sign", async () => {
    for (const prompt of [
      fenced("# a comment", "", 'call bash {"command": "wc -l a.csv"}', "say There are {{result:1}} lines."),
      'Count.\n@ call bash {"command": "wc -l a.csv"}\nignored, as this@example.com is\n@ say There are {{result:1}} lines.',
    ]) {
      const turns = await turnsOf(prompt, ["42"]);
      expect(turns[0]?.tool_calls).toMatchObject([{ name: "bash", args: { command: "wc -l a.csv" } }]);
      expect(turns[0]?.tool_calls?.[0]?.id).toMatch(CALL_ID_PATTERN);
      expect(turns[0]?.response_metadata).toMatchObject({ finish_reason: "tool_calls", model_name: "scripted" });
      expect(last(turns)).toBe("There are 42 lines.");
    }
  });

  it("joins steps marked & into one turn of text and parallel calls", async () => {
    const [first, ...others] = await turnsOf(
      fenced("& say Looking.", "& call ls {}", "& call bash", "call ls", "say done"),
    );
    expect(first?.text).toBe("Looking.");
    expect(first?.tool_calls?.map((call) => call.name)).toEqual(["ls", "bash"]);
    expect(others.length).toBe(2);
  });

  it("delegates and submits batches, with the text of a here-document", async () => {
    const [first, second] = await turnsOf(
      fenced(
        "& delegate bash :: Sum it :: add a :: b",
        "& delegate general-purpose :: Look :: <<'CHILD'",
        "@ say child {{result:1}}",
        "CHILD",
        "batch bash :: Squares :: 2..4 :: square {{item}}",
        "say done",
      ),
    );
    expect(first?.tool_calls?.map((call) => call.args)).toEqual([
      { subagent_type: "bash", description: "Sum it", prompt: "add a :: b" },
      { subagent_type: "general-purpose", description: "Look", prompt: "@ say child {{result:1}}" },
    ]);
    expect(second?.tool_calls).toMatchObject([
      {
        name: "batch_task",
        args: {
          subagent_type: "bash",
          title: "Squares",
          items: [
            { key: "2", prompt: "square 2" },
            { key: "3", prompt: "square 3" },
            { key: "4", prompt: "square 4" },
          ],
        },
      },
    ]);
  });

  it("gives a here-document to a named argument", async () => {
    const [first] = await turnsOf(
      fenced('call write_file {"path": "a.sh"} content <<END', "line 1", "", "line 3", "END"),
    );
    expect(first?.tool_calls?.[0]?.args).toEqual({ path: "a.sh", content: "line 1\n\nline 3" });
  });

  it("passes raw arguments through the strict boundary like any provider's", async () => {
    const [first] = await turnsOf(fenced('raw bash {"command": "cut'));
    const id = first?.tool_calls?.[0]?.id ?? "";
    expect(first?.tool_calls?.[0]?.args).toEqual({});
    expect(first?.additional_kwargs.deputy_invalid_tool_calls).toMatchObject({ [id]: { raw: '{"command": "cut' } });
  });
});

describe("quotes", () => {
  const output = 'first\ntotal: 17, mean 3\n{"never": "read"}';
  it.each([
    ["{{result:1}}", output],
    ["{{result:2}}", "second"],
    ["{{result:last:json /n}}", "5"],
    ["{{result:1:line 1}}", "first"],
    ["{{result:1:after total: }}", "17, mean 3"],
    ["{{result:1:word after total:}}", "17"],
    ["{{result:3:json /a/0/b~1c}}", "deep"],
    ["{{result:3:json /n}}", "5"],
    ["{{prompt:word after Please}}", ":"],
    ["\\{{result:1}}", "{{result:1}}"],
    ["no quote {not} {{ }", "no quote {not} {{ }"],
  ])("%s", async (quote, expected) => {
    const calls = ["& call a", "& call b", "& call c"];
    const turns = await turnsOf(fenced(...calls, `say ${quote}`), [output, "second", '{"a":[{"b/c":"deep"}],"n":5}']);
    expect(last(turns)).toBe(expected);
  });

  it("are read inside the strings of arguments, where they cannot break the JSON", async () => {
    const turns = await turnsOf(fenced("call a", 'call b {"x": ["{{result:1}}"]}', "say ok"), ['"quoted"\n']);
    expect(turns[1]?.tool_calls?.[0]?.args).toEqual({ x: ['"quoted"\n'] });
  });

  it("are not read a second time in what they brought in", async () => {
    expect(last(await turnsOf(fenced("call a", "say {{result:1}}"), ["{{prompt}}"]))).toBe("{{prompt}}");
  });
});

describe("a bad script is answered by an error that names the line and what is allowed", () => {
  it.each([
    [["dance now"], "line 3", "say, call"],
    [["say ok", 'call bash {"command": }'], "line 4", "one JSON object"],
    [["call bash [1]"], "line 3", "one JSON object"],
    [["say <<END", "never ended"], "line 3", "END"],
    [["delegate bash :: no prompt"], "line 3", "delegate <subagent_type>"],
    [["batch bash :: t :: 1..9999 :: p"], "line 3", "batch <subagent_type>"],
    [["delay 10001"], "line 3", "10000"],
    [["usage few"], "line 3", "usage none"],
    [["fail 200"], "line 3", "400-599"],
    [["say {{result:1}}"], "line 3", "0 results"],
    [["say {{result:1:/x/}}"], "line 3", "results"],
    [["say {{secret}}"], "line 3", "{{prompt}}"],
    [["# nothing"], "line 3", "no step"],
  ])("%j", async (lines, line, allowed) => {
    const answer = await ask(fenced(...lines));
    expect(answer.text).toMatch(/^script error: line \d+: /);
    expect(answer.text).toContain(line);
    expect(answer.text).toContain(allowed);
    expect(answer.tool_calls).toEqual([]);
  });

  it("an open fence", async () => {
    expect((await ask("```script\nsay hello")).text).toContain("script error: line 1");
  });
});

describe("the prompt is the latest visible human message", () => {
  it("skips what the framework injects", async () => {
    const hidden = new HumanMessage({ content: "@ say hidden", additional_kwargs: { hide_from_ui: true } });
    const warning = new HumanMessage({ content: "@ say warning", name: "loop_warning" });
    expect((await ask("@ say visible", [hidden, warning])).text).toBe("visible");
  });

  it("starts a new turn count at a new human message", async () => {
    const since = [new AIMessage("old answer"), new HumanMessage("@ say new")];
    expect((await ask("@ say old", since)).text).toBe("new");
  });
});

describe("usage", () => {
  it("counts words, takes fixed numbers, or stays missing on request (R67)", async () => {
    expect((await ask("@ say three words here")).usage_metadata).toEqual({
      input_tokens: 7,
      output_tokens: 3,
      total_tokens: 10,
    });
    expect((await ask("@ usage 100 7\n@ say x")).usage_metadata).toMatchObject({ input_tokens: 100, output_tokens: 7 });
    expect((await ask("@ usage none\n@ say x")).usage_metadata).toBeUndefined();
  });
});

describe("streaming", () => {
  it("reaches LangGraph's messages stream token by token, under the id of the stored message", async () => {
    const State = Annotation.Root({ answer: Annotation<AIMessage> });
    const graph = new StateGraph(State)
      .addNode("model", async (_state, config) => ({ answer: await ask("@ say one two three", [], config) }))
      .addEdge("__start__", "model")
      .compile();
    const tokens: AIMessageChunk[] = [];
    let stored: AIMessage | undefined;
    for await (const [mode, chunk] of await graph.stream({}, { streamMode: ["messages", "values"] })) {
      if (mode === "messages") tokens.push(chunk[0] as AIMessageChunk);
      else stored = (chunk as { answer?: AIMessage }).answer ?? stored;
    }
    expect(tokens.map((token) => token.text)).toEqual(["one ", "two ", "three", ""]);
    expect(new Set(tokens.map((token) => token.id))).toEqual(new Set([stored?.id]));
    expect(stored).not.toBeInstanceOf(AIMessageChunk);
  });

  it("waits the configured delay behind each token", async () => {
    const waited: number[] = [];
    const slow = createScriptedModel({
      newId: () => "m",
      random: Math.random,
      modelIdleMs: 20,
      sleep: (ms) => Promise.resolve(void waited.push(ms)),
    });
    await slow.generate({ messages: [new HumanMessage("@ delay 40\n@ say a b c")], tools: [] }, {});
    expect(waited).toEqual([40, 40, 40, 40]);
  });

  it("stops at an abort, in the middle of a delay", async () => {
    const controller = new AbortController();
    const callbacks = [{ handleLLMNewToken: () => setTimeout(() => controller.abort(new Error("cancelled"))) }];
    const work = ask("@ delay 10000\n@ say a b c", [], { signal: controller.signal, callbacks });
    await expect(work).rejects.toThrow("cancelled");
  });

  it("is deterministic: the same conversation gives the same answer", async () => {
    const seen = await Promise.all([1, 2, 3].map(() => ask("@ say always {{prompt:line 1}}")));
    expect(new Set(seen.map((answer) => answer.text)).size).toBe(1);
  });
});
