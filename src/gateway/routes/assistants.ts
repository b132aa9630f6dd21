/**
 * `/assistants`: the deployment's, which everyone sees, and the caller's own. An edit or a deletion touches no run that
 * was accepted before: a run keeps what its assistant was.
 */
import { z } from "zod";
import {
  assistantSchema,
  assistantVersionSchema,
  assistantVersionsBodySchema,
  countAssistantsBodySchema,
  createAssistantBodySchema,
  deleteAssistantQuerySchema,
  graphDrawingSchema,
  graphQuerySchema,
  graphSchemasSchema,
  latestAssistantBodySchema,
  patchAssistantBodySchema,
  searchAssistantsBodySchema,
  subgraphNamespaceSchema,
  subgraphsQuerySchema,
} from "../../protocol/assistants.ts";
import { ok } from "../../domain/shared/result.ts";
import { clientIdSchema } from "../../protocol/identifiers.ts";
import { answer, empty, json } from "../answers.ts";
import { createAssistant, deleteAssistant, patchAssistant, setLatestVersion } from "../assistant-changes.ts";
import { describeAssistant, findAssistant, listVersions, searchAssistants } from "../assistants.ts";
import { JSON_BODY_BYTES_MAX } from "../bounds.ts";
import { operation } from "../operation.ts";
import { onlyFields } from "../only-fields.ts";
import { pageOf } from "../pagination.ts";

const assistantParams = z.object({ assistant_id: clientIdSchema });
const ASSISTANT = { description: "The assistant.", schema: assistantSchema } as const;

const create = operation({
  method: "post",
  path: "/assistants",
  id: "createAssistant",
  tag: "assistants",
  summary: "Stores an assistant: a graph with defaults for its runs.",
  body: { schema: createAssistantBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 200: ASSISTANT },
  errors: ["already_exists"],
  handle: async ({ body, principal, deps }) =>
    answer(await createAssistant(deps, principal.owner, body), (created) => json(created)),
});

const search = operation({
  method: "post",
  path: "/assistants/search",
  id: "searchAssistants",
  tag: "assistants",
  summary: "Lists the deployment's assistants and the caller's own.",
  body: { schema: searchAssistantsBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: {
    200: {
      description: "One page, with the fields of `select` alone when it was given.",
      schema: z.array(assistantSchema.partial()),
    },
  },
  handle: async ({ body, principal, deps }) => {
    const all = await searchAssistants(deps, principal.owner, body);
    const { page, headers } = pageOf(all, body);
    return json(
      page.map((each) => onlyFields(each, body.select)),
      { headers },
    );
  },
});

const count = operation({
  method: "post",
  path: "/assistants/count",
  id: "countAssistants",
  tag: "assistants",
  summary: "Counts the assistants that a search would list.",
  body: { schema: countAssistantsBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 200: { description: "How many.", schema: z.int() } },
  handle: async ({ body, principal, deps }) => json((await searchAssistants(deps, principal.owner, body)).length),
});

const get = operation({
  method: "get",
  path: "/assistants/:assistant_id",
  id: "getAssistant",
  tag: "assistants",
  summary: "One assistant by its id; the deployment's also by the name of their graph or agent.",
  params: assistantParams,
  responses: { 200: ASSISTANT },
  errors: ["not_found"],
  handle: async ({ params, principal, deps }) =>
    answer(await findAssistant(deps, principal.owner, params.assistant_id), ({ assistant }) => json(assistant)),
});

const patch = operation({
  method: "patch",
  path: "/assistants/:assistant_id",
  id: "patchAssistant",
  tag: "assistants",
  summary: "Replaces the fields given, merges metadata key by key, and makes the next version.",
  params: assistantParams,
  body: { schema: patchAssistantBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 200: ASSISTANT },
  errors: ["not_found", "forbidden", "version_conflict"],
  handle: async ({ params, body, principal, deps }) => {
    const change = { id: params.assistant_id, patch: body };
    return answer(await patchAssistant(deps, principal.owner, change), (patched) => json(patched));
  },
});

const remove = operation({
  method: "delete",
  path: "/assistants/:assistant_id",
  id: "deleteAssistant",
  tag: "assistants",
  summary:
    "Deletes an assistant with its versions; threads stay, unless `delete_threads` names those whose metadata do.",
  params: assistantParams,
  query: { schema: deleteAssistantQuerySchema },
  responses: { 204: { description: "Deleted." } },
  errors: ["not_found", "forbidden", "overloaded"],
  handle: async ({ params, query, principal, deps }) => {
    const what = { id: params.assistant_id, deleteThreads: query.delete_threads };
    return answer(await deleteAssistant(deps, principal, what), () => empty(204));
  },
});

const versions = operation({
  method: "post",
  path: "/assistants/:assistant_id/versions",
  id: "listAssistantVersions",
  tag: "assistants",
  summary: "The versions that are kept, newest first.",
  params: assistantParams,
  body: { schema: assistantVersionsBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 200: { description: "One page.", schema: z.array(assistantVersionSchema) } },
  errors: ["not_found"],
  handle: async ({ params, body, principal, deps }) => {
    const all = await listVersions(deps, principal.owner, { id: params.assistant_id, metadata: body.metadata });
    return answer(all, (list) => {
      const { page, headers } = pageOf(list, body);
      return json(page, { headers });
    });
  },
});

const latest = operation({
  method: "post",
  path: "/assistants/:assistant_id/latest",
  id: "setLatestAssistantVersion",
  tag: "assistants",
  summary: "Makes a kept version the current one again; the next change is a version later than all.",
  params: assistantParams,
  body: { schema: latestAssistantBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 200: ASSISTANT },
  errors: ["not_found", "forbidden", "too_large"],
  handle: async ({ params, body, principal, deps }) => {
    const choice = { id: params.assistant_id, version: body.version };
    return answer(await setLatestVersion(deps, principal.owner, choice), (current) => json(current));
  },
});

const graph = operation({
  method: "get",
  path: "/assistants/:assistant_id/graph",
  id: "getAssistantGraph",
  tag: "assistants",
  summary: "The nodes and edges of the assistant's graph; `xray` draws nested graphs in their place.",
  params: assistantParams,
  query: { schema: graphQuerySchema },
  responses: { 200: { description: "The drawing.", schema: graphDrawingSchema } },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const described = await describeAssistant(deps, principal.owner, params.assistant_id);
    return described.ok ? ok(Response.json(await described.value.draw(query.xray))) : described;
  },
});

const schemas = operation({
  method: "get",
  path: "/assistants/:assistant_id/schemas",
  id: "getAssistantSchemas",
  tag: "assistants",
  summary: "JSON Schemas of the graph's input, output, state, config and context; null where the graph tells nothing.",
  params: assistantParams,
  responses: { 200: { description: "The schemas.", schema: graphSchemasSchema } },
  errors: ["not_found"],
  handle: async ({ params, principal, deps }) =>
    answer(await describeAssistant(deps, principal.owner, params.assistant_id), (described) =>
      json(described.schemas()),
    ),
});

const SUBGRAPHS = {
  method: "get",
  tag: "assistants",
  query: { schema: subgraphsQuerySchema },
  responses: { 200: { description: "Schemas by namespace.", schema: z.record(z.string(), graphSchemasSchema) } },
  errors: ["not_found"],
} as const;

const subgraphs = operation({
  ...SUBGRAPHS,
  path: "/assistants/:assistant_id/subgraphs",
  id: "listAssistantSubgraphs",
  summary: "The graphs that the assistant's graph is made of, with those inside of them when `recurse`.",
  params: assistantParams,
  handle: async ({ params, query, principal, deps }) =>
    subgraphsOf(await describeAssistant(deps, principal.owner, params.assistant_id), query, undefined),
});

const subgraph = operation({
  ...SUBGRAPHS,
  path: "/assistants/:assistant_id/subgraphs/:namespace",
  id: "getAssistantSubgraph",
  summary: "The graph under one namespace; nothing for a namespace that the graph does not have.",
  params: assistantParams.extend({ namespace: subgraphNamespaceSchema }),
  handle: async ({ params, query, principal, deps }) =>
    subgraphsOf(await describeAssistant(deps, principal.owner, params.assistant_id), query, params.namespace),
});

async function subgraphsOf(
  described: Awaited<ReturnType<typeof describeAssistant>>,
  { recurse }: { readonly recurse: boolean },
  namespace: string | undefined,
) {
  return described.ok ? ok(Response.json(await described.value.subgraphs({ namespace, recurse }))) : described;
}

export const assistantOperations = [
  create,
  search,
  count,
  get,
  patch,
  remove,
  versions,
  latest,
  graph,
  schemas,
  subgraphs,
  subgraph,
] as const;
