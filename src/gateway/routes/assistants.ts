import { z } from "zod";
import {
  assistantSchema,
  searchAssistantsBodySchema,
  UNSUPPORTED_ASSISTANT_OPTIONS,
} from "../../protocol/assistants.ts";
import { clientIdSchema } from "../../protocol/identifiers.ts";
import { answer, json } from "../answers.ts";
import { findAssistant, searchAssistants } from "../assistants.ts";
import { JSON_BODY_BYTES_MAX } from "../bounds.ts";
import { operation } from "../operation.ts";
import { paginationHeaders } from "../pagination.ts";

const search = operation({
  method: "post",
  path: "/assistants/search",
  id: "searchAssistants",
  tag: "assistants",
  summary: "Lists assistants: one for each graph.",
  body: {
    schema: searchAssistantsBodySchema,
    bytesMax: JSON_BODY_BYTES_MAX,
    unsupported: { options: UNSUPPORTED_ASSISTANT_OPTIONS },
  },
  responses: { 200: { description: "One page.", schema: z.array(assistantSchema) } },
  handle: async ({ body, deps }) => {
    const all = searchAssistants(deps, body);
    const { offset, limit } = body;
    const headers = paginationHeaders({ offset, limit, total: all.length });
    return json(all.slice(offset, offset + limit), { headers });
  },
});

const get = operation({
  method: "get",
  path: "/assistants/:assistant_id",
  id: "getAssistant",
  tag: "assistants",
  summary: "One assistant, by its id or its graph's id.",
  params: z.object({ assistant_id: clientIdSchema }),
  responses: { 200: { description: "The assistant.", schema: assistantSchema } },
  errors: ["not_found"],
  handle: async ({ params, deps }) => answer(findAssistant(deps, params.assistant_id), (found) => json(found)),
});

export const assistantOperations = [search, get] as const;
