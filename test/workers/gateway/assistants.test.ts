import { expect, it } from "vitest";
import { defaultAssistantId } from "../../../src/platform/identifiers.ts";
import type { Assistant } from "../../../src/protocol/assistants.ts";
import { ask, failure, gatewayDeps } from "../../support/gateway.ts";

/** An owner who never made an assistant: what other files' owners stored is in the same database. */
const BARE = { auth: { apiKeys: JSON.stringify({ bare: { owner: "bare", role: "user" } }), devOwner: undefined } };

const search = async (json: object) => {
  const answer = await ask(gatewayDeps(BARE), "/assistants/search", { method: "POST", json, key: "bare" });
  return { answer, graphs: (await answer.json<Assistant[]>()).map((one) => one.graph_id) };
};

it("each graph has a default assistant with the stable id clients compute", async () => {
  expect(defaultAssistantId("agent")).toBe("fe096781-5601-53d2-b2f6-0d3403f7e9ca");
  const answers = [];
  for (const id of ["lead_agent", defaultAssistantId("lead_agent")]) {
    answers.push(await (await ask(gatewayDeps(), `/assistants/${id}`)).json());
  }
  expect(answers[0]).toEqual(answers[1]);
  expect(answers[0]).toMatchObject({
    graph_id: "lead_agent",
    assistant_id: defaultAssistantId("lead_agent"),
    version: 1,
  });
});

it("an unknown assistant is 404 with the words clients look for", async () => {
  const answer = await ask(gatewayDeps(), "/assistants/nobody");
  expect([answer.status, await answer.json()]).toMatchObject([
    404,
    { code: "not_found", message: "Assistant not found" },
  ]);
});

it("searches by graph, name and metadata, in pages", async () => {
  expect((await search({})).graphs.sort()).toEqual(["echo", "lead_agent"]);
  expect((await search({ graph_id: "echo" })).graphs).toEqual(["echo"]);
  expect((await search({ name: "LEAD" })).graphs).toEqual(["lead_agent"]);
  expect((await search({ metadata: { created_by: "system" } })).graphs.length).toBe(2);
  expect((await search({ metadata: { created_by: "me" } })).graphs).toEqual([]);
  expect((await search({ sort_by: "graph_id", sort_order: "desc" })).graphs).toEqual(["lead_agent", "echo"]);
  const { answer, graphs } = await search({ sort_by: "graph_id", sort_order: "asc", limit: 1 });
  expect(graphs).toEqual(["echo"]);
  expect([answer.headers.get("x-pagination-total"), answer.headers.get("x-pagination-next")]).toEqual(["2", "1"]);
  const last = await search({ sort_by: "graph_id", sort_order: "asc", limit: 1, offset: 1 });
  expect([last.graphs, last.answer.headers.get("x-pagination-next")]).toEqual([["lead_agent"], null]);
  const refused = await ask(gatewayDeps(), "/assistants/search", { method: "POST", json: { select: ["secret"] } });
  expect(await failure(refused)).toEqual([422, "invalid_request"]);
});
