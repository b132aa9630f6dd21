/** `POST /runs/search`, Deputy's own: the caller's runs over all threads, as the lists' database knows them. */
import { z } from "zod";
import { listedFoundRunSchema, searchRunsBodySchema } from "../../protocol/run-search.ts";
import { json } from "../answers.ts";
import { JSON_BODY_BYTES_MAX } from "../bounds.ts";
import { onlyFields } from "../only-fields.ts";
import { operation } from "../operation.ts";

const search = operation({
  method: "post",
  path: "/runs/search",
  id: "searchRuns",
  tag: "runs",
  summary: "Lists the caller's runs of all threads, by status, time, thread, assistant and metadata.",
  body: { schema: searchRunsBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 200: { description: "One page.", schema: z.array(listedFoundRunSchema) } },
  handle: async ({ body, principal, deps }) => {
    const { runs, isMore } = await deps.runSearch.search(principal.owner, body);
    const next = body.offset + body.limit;
    const headers: Record<string, string> = isMore ? { "x-pagination-next": String(next) } : {};
    return json(
      runs.map((run) => onlyFields(run, body.select)),
      { headers },
    );
  },
});

export const runSearchOperations = [search] as const;
