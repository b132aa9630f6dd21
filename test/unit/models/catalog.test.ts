import { HumanMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { parseDeputyConfig } from "../../../src/config.ts";
import { createModelCatalog, type ModelCredentials } from "../../../src/agent/models/catalog.ts";

const catalogOf = (models: object[] | undefined, credentials: ModelCredentials, fetchLike?: typeof fetch) =>
  createModelCatalog({
    models: parseDeputyConfig(models === undefined ? {} : { models }).models,
    credentials,
    modelIdleMs: 1_000,
    newId: () => "m",
    random: Math.random,
    now: Date.now,
    ...(fetchLike && { fetch: fetchLike }),
  });

const openai = { name: "gpt", provider: "openai", model: "configured-model" };

describe("the default model", () => {
  it("is scripted without credentials", () => {
    for (const key of [undefined, "", "  "]) {
      const catalog = catalogOf(undefined, { openaiApiKey: key });
      expect(catalog.defaultName).toBe("scripted");
      expect(catalog.names()).toEqual(["scripted"]);
    }
  });

  it("is the first in the list whose credentials are present; scripted is always last", () => {
    const catalog = catalogOf([{ name: "demo", provider: "scripted" }, openai, { ...openai, name: "second" }], {
      openaiApiKey: "k",
    });
    expect(catalog.names()).toEqual(["gpt", "second", "demo", "scripted"]);
    expect(catalog.defaultName).toBe("gpt");
  });

  it("is Anthropic's where only its key is there, and OpenAI's where both are: the order is the configuration's", () => {
    const anthropicApiKey = "k";
    expect(catalogOf(undefined, { anthropicApiKey }).names()).toEqual(["anthropic", "scripted"]);
    expect(catalogOf(undefined, { anthropicApiKey: " " }).names()).toEqual(["scripted"]);
    expect(catalogOf(undefined, { anthropicApiKey, openaiApiKey: "k" }).names()).toEqual([
      "openai",
      "anthropic",
      "scripted",
    ]);
    const claude = { name: "claude", provider: "anthropic" };
    const catalog = catalogOf([claude, openai], { anthropicApiKey, openaiApiKey: "k" });
    expect(catalog.defaultName).toBe("claude");
  });

  it("is meant by no name and by inherit; an unknown name finds nothing", () => {
    const catalog = catalogOf([openai], { openaiApiKey: "k" });
    expect(catalog.find()?.name).toBe("gpt");
    expect(catalog.find("inherit")?.name).toBe("gpt");
    expect(catalog.find("scripted")?.provider).toBe("scripted");
    expect(catalog.find("unknown")).toBeUndefined();
  });
});

describe("flags (R166)", () => {
  const sent: string[] = [];
  const credentials = { openaiApiKey: "k", anthropicApiKey: "k" };
  const record: typeof fetch = (_url, init) => {
    sent.push(init?.body as string);
    return Promise.resolve(new Response("no", { status: 400 }));
  };
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const looking = { messages: [new HumanMessage({ content: [image] })], tools: [] };

  it("stand on the model, and on those that stand in for it", () => {
    const claude = { name: "claude", provider: "anthropic", thinking: true, fallbacks: ["gpt", "scripted"] };
    const found = catalogOf([claude, { ...openai, vision: true }], credentials).find("claude");
    expect(found).toMatchObject({ provider: "anthropic", thinking: true, vision: false });
    expect(found?.fallbacks).toMatchObject([{ name: "gpt", thinking: false, vision: true }, { name: "scripted" }]);
  });

  it.each(["openai", "anthropic"])(
    "a model of %s without vision is sent a note in an image's place",
    async (provider) => {
      for (const vision of [true, false]) {
        const model = catalogOf([{ name: "m", provider, vision }], credentials, record).find("m");
        await expect(model?.generate(looking, {})).rejects.toMatchObject({ status: 400 });
        expect(sent.at(-1)?.includes("AAAA")).toBe(vision);
        expect(sent.at(-1)?.includes("does not read images")).toBe(!vision);
      }
      expect(looking.messages[0]?.content).toEqual([image]);
    },
  );
});

describe("fallback models", () => {
  const models = [
    { ...openai, fallbacks: ["second", "scripted"] },
    { ...openai, name: "second", fallbacks: ["gpt"] },
  ];

  it("are those of the model itself, in order, without lists of their own", () => {
    const found = catalogOf(models, { openaiApiKey: "k" }).find("gpt");
    expect(found?.fallbacks?.map((model) => [model.name, model.fallbacks])).toEqual([
      ["second", undefined],
      ["scripted", undefined],
    ]);
  });

  it("without credentials are passed over", () => {
    const demo = { name: "demo", provider: "scripted", fallbacks: ["gpt", "scripted"] };
    const catalog = catalogOf([openai, demo], {});
    expect(catalog.find("demo")?.fallbacks?.map((model) => model.name)).toEqual(["scripted"]);
  });
});

it.each([[[openai, openai]], [[{ ...openai, name: "inherit" }]], [[{ ...openai, name: "scripted" }]]])(
  "refuses a name used twice or reserved at start: %j",
  (models) => {
    expect(() => catalogOf(models, { openaiApiKey: "k" })).toThrow("is taken");
  },
);

describe("requests", () => {
  const sent: { url: string; body: { model: string } }[] = [];
  const fetchLike: typeof fetch = (url, init) => {
    sent.push({ url: new Request(url).url, body: JSON.parse(init?.body as string) as { model: string } });
    const event = 'data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\n';
    return Promise.resolve(new Response(event, { headers: { "content-type": "text/event-stream" } }));
  };
  const request = { messages: [new HumanMessage("hi")], tools: [] };

  it.each([
    [{}, "https://api.openai.com/v1/chat/completions", "configured-model"],
    [{ openaiBaseUrl: "http://llm.test/v1", openaiModel: "other" }, "http://llm.test/v1/chat/completions", "other"],
  ])("go to the base URL and model of %j", async (credentials, url, model) => {
    await catalogOf([openai], { openaiApiKey: "k", ...credentials }, fetchLike)
      .find()
      ?.generate(request, {});
    expect(sent.at(-1)).toMatchObject({ url, body: { model } });
  });

  it("that break a rule reach no provider", async () => {
    const before = sent.length;
    for (const name of ["gpt", "scripted"]) {
      const model = catalogOf([openai], { openaiApiKey: "k" }, fetchLike).find(name);
      await expect(model?.generate({ messages: [], tools: [] }, {})).rejects.toThrow("human_first");
    }
    expect(sent.length).toBe(before);
  });
});
