/** `/owner`: everything of whoever asks, exported or erased. Whose it is the token says, nothing else. */
import { z } from "zod";
import { ok } from "../../domain/shared/result.ts";
import { clientIdSchema } from "../../protocol/identifiers.ts";
import { ownerErasureSchema } from "../../protocol/owners.ts";
import { answer, json } from "../answers.ts";
import { operation } from "../operation.ts";
import { eraseOwner } from "../owner-erasure.ts";
import { ownerExport } from "../owner-export.ts";

const JSONL = { 200: { description: "JSON lines.", media: "application/jsonl" } } as const;

const exportAll = operation({
  method: "get",
  path: "/owner/export",
  id: "exportOwner",
  tag: "owner",
  summary: "The caller's assistants and threads as JSON lines; the last one says whether that was all.",
  query: { schema: z.strictObject({ after: clientIdSchema.optional() }) },
  responses: JSONL,
  handle: async ({ query, principal, deps }) => {
    const lines = ownerExport(deps, principal, { after: query.after ?? "" });
    return ok(new Response(lines, { headers: { "content-type": "application/jsonl", "cache-control": "no-cache" } }));
  },
});

const erase = operation({
  method: "delete",
  path: "/owner",
  id: "eraseOwner",
  tag: "owner",
  summary: "Erases everything of the caller: threads, runs, batches, files, assistants. There is no way back.",
  query: { schema: z.strictObject({ confirm: z.literal("erase") }) },
  responses: {
    200: { description: "Nothing is left.", schema: ownerErasureSchema },
    202: { description: "More than one request takes: ask again.", schema: ownerErasureSchema },
  },
  errors: ["overloaded"],
  handle: async ({ principal, deps }) =>
    answer(await eraseOwner(deps, principal), (erased) => json(erased, { status: erased.done ? 200 : 202 })),
});

export const ownerOperations = [exportAll, erase] as const;
