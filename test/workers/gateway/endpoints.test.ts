/**
 * Every route's codes for good, bad, missing and foreign inputs, asked of the running Worker and compared with the record,
 * `docs/endpoints.md`. A route without a sample or without a record fails. After a change on purpose:
 * `npx vitest run --project workers test/workers/gateway/endpoints.test.ts -u` writes the record anew.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { OPERATIONS } from "../../../src/gateway/app.ts";
import {
  askAs,
  freshBody,
  ID_PARAMS,
  type Ids,
  makeWorld,
  OWNERS,
  namesOf,
  paramsOf,
  requestOf,
  type Spec,
  startSlowRun,
  type WorldAnswer,
  type WorldRequest,
} from "../../support/endpoint-world.ts";
import { ROUTE_SAMPLES } from "../../support/route-samples.ts";

const nameOf = ({ method, path }: Spec) => `${method.toUpperCase()} ${path.replace("{[\\s\\S]*}", "")}`;
const routes = OPERATIONS.map(({ spec }) => ({ spec, name: nameOf(spec) }));

interface Row {
  readonly good: string;
  readonly bad: string;
  readonly missing: string;
  readonly foreign: string;
  readonly noKey: string;
}

const rows = new Map<string, Row>();

const written = ({ status, code }: WorldAnswer) => (code === undefined ? String(status) : `${status} \`${code}\``);

/** Names in bodies that stand for something the world has. */
function withIds(json: unknown, ids: Ids): unknown {
  if (Array.isArray(json)) return json.map((each) => withIds(each, ids));
  if (typeof json !== "object" || json === null) return json;
  const entries = Object.entries(json).map(([field, value]) => {
    if (field === "thread_ids" || (field === "ids" && Array.isArray(value))) return [field, [ids.thread_id]];
    const id = field === "assistant_id" ? undefined : ids[field as keyof Ids];
    return [field, typeof value === "string" && id !== undefined ? id : withIds(value, ids)];
  });
  return Object.fromEntries(entries) as unknown;
}

class Asker {
  readonly spec: Spec;
  readonly key: string;
  readonly #isEndless: boolean;

  constructor(spec: Spec) {
    this.spec = spec;
    this.key = ROUTE_SAMPLES[spec.id]?.key ?? (spec.role === "admin" ? OWNERS.root : OWNERS.alice);
    this.#isEndless = ROUTE_SAMPLES[spec.id]?.isEndless === true;
  }

  request(ids: Ids & Partial<Record<string, string>>): WorldRequest {
    const request = requestOf(this.spec, ids);
    const { json } = request;
    return json === undefined ? request : { ...request, json: freshBody(this.spec, withIds(json, ids)) };
  }

  ask(request: WorldRequest, key: string | null = this.key): Promise<WorldAnswer> {
    return askAs(key, request, this.#isEndless);
  }
}

/** A managed definition is the deployment's; each route gets its own, because some remove it. */
async function makeSubagent(): Promise<string> {
  const name = `made-${crypto.randomUUID().slice(0, 8)}`;
  const json = { name, description: "Samples.", system_prompt: "Sample." };
  const answer = await askAs(OWNERS.root, { method: "POST", path: "/subagents", json });
  expect(answer.status).toBe(201);
  return name;
}

async function rowOf(spec: Spec): Promise<Row> {
  const asker = new Asker(spec);
  const names = namesOf(spec).filter((each) => each === "name" || ID_PARAMS.some((known) => known === each));
  const world = await makeWorld("alice", "recorded", names);
  const active = ROUTE_SAMPLES[spec.id]?.needsActiveRun ? await startSlowRun("alice", world.thread_id) : {};
  const ids = { ...world, ...active, ...(names.includes("name") ? { name: await makeSubagent() } : {}) };
  const request = asker.request(ids);
  const missing = new Set<string>();
  for (const name of names) {
    missing.add(written(await asker.ask(asker.request({ ...ids, [name]: crypto.randomUUID() }))));
  }
  const foreign = missing.size === 0 ? "–" : written(await asker.ask(request, OWNERS.bob));
  const bad = spec.open === true ? "–" : written(await asker.ask(badOf(spec, request)));
  const noKey = written(await asker.ask(request, null));
  // Last, because it may take away what it names.
  const good = written(await asker.ask(request));
  return { good, bad, missing: missing.size === 0 ? "–" : [...missing].join(", "), foreign, noKey };
}

function badOf(spec: Spec, request: WorldRequest): WorldRequest {
  if (spec.body === undefined) return { ...request, query: "?surprise=1" };
  return { ...request, json: { ...(request.json as object), surprise: 1 } };
}

function pageOf(): string {
  const lines = routes.map(({ spec, name }) => {
    const { good, bad, missing, foreign, noKey } = rows.get(spec.id)!;
    return `| \`${name}\` | ${good} | ${bad} | ${missing} | ${foreign} | ${noKey} |`;
  });
  return `# Endpoints and their codes

Every route of the gateway, asked of the running Worker by \`test/workers/gateway/endpoints.test.ts\`, which compares the answers with this
page and writes it (\`-u\`). [http-api.md](http-api.md) says what they do.

- good: a request that is right, of the owner of what it names; of an administrator where the route needs one
- bad: an unknown field in its body, or an unknown query parameter
- missing: each id of its path and body in turn names nothing
- foreign: the good request, of another owner without a role. Subagents are the deployment's: there it is a key without the role
- no key: the good request without one

| route | good | bad | missing | foreign | no key |
|---|---|---|---|---|---|
${lines.join("\n")}
`;
}

describe("every route", () => {
  beforeAll(() => {
    expect(Object.keys(ROUTE_SAMPLES).sort()).toEqual(routes.map(({ spec }) => spec.id).sort());
  });

  it.each(routes)(
    "$name answers a good request well, a bad one with 4xx, a foreign one as a missing one",
    async ({ spec }) => {
      const row = await rowOf(spec);
      rows.set(spec.id, row);
      expect(row.good, "good").toMatch(/^2\d\d$/);
      expect(row.bad, "bad").toMatch(/^(4\d\d `|–)/);
      if (!paramsOf(spec).includes("name")) expect(row.foreign, "foreign").toBe(row.missing);
      expect(row.noKey).toBe(spec.open === true ? "200" : "401 `unauthorized`");
    },
  );

  it("has its codes on record", async () => {
    expect([...rows.keys()].sort()).toEqual(routes.map(({ spec }) => spec.id).sort());
    await expect(pageOf()).toMatchFileSnapshot("../../../docs/endpoints.md");
  });
});
