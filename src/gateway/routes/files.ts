/** Workspace files. The path may hold slashes; it is read from the raw URL, because decoding twice hides traversal. */
import { z } from "zod";
import { type Result, ok } from "../../domain/shared/result.ts";
import type { ApiRefusal } from "../../protocol/errors.ts";
import { fileListingSchema, storedFileSchema } from "../../protocol/files.ts";
import { answer, empty, json } from "../answers.ts";
import { readBody } from "../body.ts";
import { FILE_BYTES_MAX } from "../../domain/workspace/paths.ts";
import { fileHeaders } from "../content-types.ts";
import { refuse } from "../errors.ts";
import { parseFilePath, WORKSPACE_ROOT } from "../file-paths.ts";
import { addressOf, type Answer, type Call, operation } from "../operation.ts";
import { threadParams } from "../shapes.ts";

/** Anything, the empty path and line breaks included: `parseFilePath` judges it, not the router. */
const FILE_PATH = "/threads/:thread_id/files/:path{[\\s\\S]*}";

const fileParams = threadParams.extend({ path: z.string().describe("Percent-encoded; relative to the workspace.") });

function pathOf(request: Request): Result<string, ApiRefusal> {
  const { pathname } = new URL(request.url);
  return parseFilePath(/^\/threads\/[^/]+\/files(\/.*)?$/.exec(pathname)?.[1] ?? "");
}

function namedPathOf(request: Request): Result<string, ApiRefusal> {
  const path = pathOf(request);
  return path.ok && path.value === WORKSPACE_ROOT ? refuse("invalid_request", "path: must name a file") : path;
}

async function read(call: Call<{ thread_id: string }, unknown, unknown>): Promise<Answer> {
  const path = pathOf(call.request);
  if (!path.ok) return path;
  const address = addressOf(call.principal, call.params.thread_id);
  const found = await call.deps.threads.stub(address.owner, address.thread_id).getFile(address, path.value);
  return answer(found, (entry) =>
    entry.kind === "directory"
      ? json({ path: entry.path, entries: entry.entries })
      : ok(new Response(entry.bytes, { headers: fileHeaders(path.value) })),
  );
}

const list = operation({
  method: "get",
  path: "/threads/:thread_id/files",
  id: "listFiles",
  tag: "files",
  summary: "Lists the workspace's root.",
  params: threadParams,
  responses: { 200: { description: "The listing.", schema: fileListingSchema } },
  errors: ["not_found"],
  handle: read,
});

const get = operation({
  method: "get",
  path: FILE_PATH,
  id: "getFile",
  tag: "files",
  summary: "Downloads a file; a directory answers its listing.",
  params: fileParams,
  responses: {
    200: {
      description: "The bytes of a file under the media type of its name, or the listing of a directory.",
      schema: fileListingSchema,
      bytes: true,
    },
  },
  errors: ["not_found"],
  handle: read,
});

const put = operation({
  method: "put",
  path: FILE_PATH,
  id: "putFile",
  tag: "files",
  summary: "Writes a file whole; directories are made as needed.",
  params: fileParams,
  rawBody: { media: "application/octet-stream" },
  responses: {
    200: { description: "Replaced.", schema: storedFileSchema },
    201: { description: "Created.", schema: storedFileSchema },
  },
  errors: ["not_found"],
  handle: async ({ params, principal, request, deps }) => {
    const path = namedPathOf(request);
    if (!path.ok) return path;
    const bytes = await readBody(request, FILE_BYTES_MAX);
    if (!bytes.ok) return bytes;
    const address = addressOf(principal, params.thread_id);
    const stub = deps.threads.stub(address.owner, address.thread_id);
    const stored = await stub.putFile(address, path.value, bytes.value);
    return answer(stored, (file) => json(file, { status: file.created ? 201 : 200 }));
  },
});

const remove = operation({
  method: "delete",
  path: FILE_PATH,
  id: "deleteFile",
  tag: "files",
  summary: "Deletes a file.",
  params: fileParams,
  responses: { 204: { description: "Deleted." } },
  errors: ["not_found"],
  handle: async ({ params, principal, request, deps }) => {
    const path = namedPathOf(request);
    if (!path.ok) return path;
    const address = addressOf(principal, params.thread_id);
    const deleted = await deps.threads.stub(address.owner, address.thread_id).deleteFile(address, path.value);
    return answer(deleted, () => empty(204));
  },
});

export const fileOperations = [list, get, put, remove] as const;
