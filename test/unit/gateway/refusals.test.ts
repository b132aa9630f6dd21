/** What a client is told of a wrong field: what is allowed there, in words, whichever route it asks. */
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { OPERATIONS } from "../../../src/gateway/app.ts";
import { readJson } from "../../../src/gateway/body.ts";
import { invalidRequest } from "../../../src/gateway/errors.ts";
import { createRunBodySchema, listRunsQuerySchema } from "../../../src/protocol/runs.ts";
import { historyBodySchema, updateStateBodySchema } from "../../../src/protocol/threads.ts";

interface Def {
  readonly type: string;
  readonly shape?: Record<string, z.ZodType>;
  readonly element?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  readonly innerType?: z.ZodType;
  readonly in?: z.ZodType;
  readonly out?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly items?: readonly z.ZodType[];
  readonly discriminator?: string;
}

const defOf = (schema: z.ZodType) => schema.def as unknown as Def;

/** Every shape inside of one, itself too. */
function within(schema: z.ZodType, seen = new Set<z.ZodType>()): Set<z.ZodType> {
  if (seen.has(schema)) return seen;
  seen.add(schema);
  const { shape = {}, element, options = [], innerType, in: input, out, valueType, items = [] } = defOf(schema);
  const parts = [...Object.values(shape), element, ...options, innerType, input, out, valueType, ...items];
  for (const part of parts) if (part !== undefined) within(part, seen);
  return seen;
}

function messageOf(schema: z.ZodType, value: unknown, where: "body" | "query" = "body"): string | undefined {
  const parsed = schema.safeParse(value);
  if (parsed.success) return undefined;
  const refused = invalidRequest(parsed.error, where);
  return refused.ok ? undefined : refused.error.message;
}

const asked = OPERATIONS.flatMap(({ spec }) => {
  const { body, query, id } = spec as { body?: { schema: z.ZodType }; query?: { schema: z.ZodType }; id: string };
  return [
    ...(body === undefined ? [] : [{ id, schema: body.schema }]),
    ...(query === undefined ? [] : [{ id, schema: query.schema }]),
  ];
});

it("a choice between shapes says what is allowed, on every route: zod's list of what each of them missed does not", () => {
  const unions = asked.flatMap(({ id, schema }) =>
    [...within(schema)]
      .filter((part) => defOf(part).type === "union" && defOf(part).discriminator === undefined)
      .map((union) => ({ id, union })),
  );
  expect(unions.length).toBeGreaterThan(20);
  const wordless = unions.filter(({ union }) => {
    const message = messageOf(union, Symbol("nothing of it")) ?? "";
    return message.includes("Invalid input") || !message.startsWith("body: must be ");
  });
  expect(wordless.map(({ id }) => id)).toEqual([]);
});

it.each([
  [{ stream_mode: 7 }, /^body\.stream_mode: must be one of "values", .*"checkpoints", or a list of them$/],
  [{ interrupt_before: "model" }, /^body\.interrupt_before: must be "\*", or a list of at most 100 names of nodes$/],
  [{ command: { goto: 7 } }, /^body\.command\.goto: must be a node's name, \{"node", "input"\}, or a list/],
  [
    { command: { goto: [{ nod: "a" }] } },
    /^body\.command\.goto: must be a node's name, \{"node", "input"\}, or a list/,
  ],
  [{ command: { update: [["a"]] } }, /^body\.command\.update: must be an object, or a list of pairs \[name, value\]$/],
])("a run with %j hears what is allowed", (option, message) => {
  expect(messageOf(createRunBodySchema, { assistant_id: "a", ...option })).toMatch(message);
});

it("so do a history and an edit of the state", () => {
  const before = "body.before: must be a checkpoint's id, or an object with its checkpoint_id";
  expect(messageOf(historyBodySchema, { before: { configurable: {} } })).toBe(before);
  expect(messageOf(updateStateBodySchema, { values: [7] })).toBe(
    "body.values: must be an object, or a list of objects",
  );
});

describe("a number in a query", () => {
  const numbers = asked.flatMap(({ id, schema }) =>
    Object.entries(defOf(schema).shape ?? {}).flatMap(([name, part]) =>
      defOf(schema).type === "object" && part.safeParse("7").success && typeof part.safeParse("7").data === "number"
        ? [{ id, name, part }]
        : [],
    ),
  );

  it("is read as it is written", () => {
    expect(numbers.length).toBeGreaterThan(8);
    expect(listRunsQuerySchema.parse({ limit: "007", offset: "12" })).toEqual({ limit: 7, offset: 12 });
  });

  it.each([[["1", "2"]], [["5", "5"]], [""], [" 5"], ["0x10"], ["1e1"], ["5.0"], ["+5"], ["five"], ["9".repeat(17)]])(
    "that is sent as %j is refused on every route, not guessed at",
    (given) => {
      const guessed = numbers.filter(({ part }) => part.safeParse(given).success);
      expect(guessed.map(({ id, name }) => `${id} ${name}`)).toEqual([]);
    },
  );

  it("that is given twice is told so", () => {
    const message = "query.limit: must be a whole number, given once";
    expect(messageOf(listRunsQuerySchema, { limit: ["1", "2"] }, "query")).toBe(message);
    expect(messageOf(listRunsQuerySchema, { limit: "" }, "query")).toBe(message);
  });
});

describe("a key called __proto__", () => {
  const read = (body: string) => readJson(new Request("http://deputy/", { method: "POST", body }), 1_000);

  it.each([
    ['{"metadata":{"__proto__":{"a":1},"b":2}}', "body.metadata.__proto__"],
    ['{"metadata":{"\\u005f_proto__":1}}', "body.metadata.__proto__"],
    [
      '{"input":{"messages":[{"additional_kwargs":{"__proto__":null}}]}}',
      "body.input.messages.0.additional_kwargs.__proto__",
    ],
    ['[{"__proto__":1}]', "body.0.__proto__"],
  ])("is refused by its place: %s", async (body, place) => {
    const message = `${place}: a key must not be called __proto__`;
    expect(await read(body)).toMatchObject({ ok: false, error: { code: "invalid_request", message } });
  });

  it("is no text of that name, and no name like it", async () => {
    const body = { metadata: { proto: "__proto__", __proto: 1, constructor: 2 } };
    expect(await read(JSON.stringify(body))).toEqual({ ok: true, value: body });
  });
});
