/**
 * Reads request bodies under a bound. Invariants: at most the bound plus one chunk is ever held, with or without a
 * content-length; bytes that are not UTF-8 are refused, not replaced.
 */
import { JSON_DEPTH_MAX, nestsDeeper } from "../domain/shared/json-depth.ts";
import { type Result, ok } from "../domain/shared/result.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { refuse } from "./errors.ts";

export async function readBody(request: Request, bytesMax: number): Promise<Result<Uint8Array, ApiRefusal>> {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > bytesMax) return tooLarge(bytesMax);
  if (request.body === null) return ok(new Uint8Array());
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body as ReadableStream<Uint8Array>) {
    size += chunk.byteLength;
    // Leaving the loop cancels the stream: the rest is not read.
    if (size > bytesMax) return tooLarge(bytesMax);
    chunks.push(chunk);
  }
  return ok(joined(chunks, size));
}

/** An empty body reads as `{}`, as clients send none where every field is optional. */
export async function readJson(request: Request, bytesMax: number): Promise<Result<unknown, ApiRefusal>> {
  const body = await readBody(request, bytesMax);
  if (!body.ok) return body;
  const json = parseJson(body.value);
  if (!json.ok) return json;
  if (nestsDeeper(json.value, JSON_DEPTH_MAX)) {
    return refuse("invalid_request", `The body nests deeper than ${JSON_DEPTH_MAX} levels.`, { limit: JSON_DEPTH_MAX });
  }
  const proto = pathOfProto(json.value);
  return proto === undefined ? json : refuseProto(["body", ...proto].join("."));
}

const PROTO = "__proto__";

/** Where an object has a key of that name. Much of what reads JSON drops it without a word, or takes it for a prototype. */
function pathOfProto(value: unknown): string[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (Object.hasOwn(value, PROTO)) return [PROTO];
  for (const [key, inner] of Object.entries(value)) {
    const found = pathOfProto(inner);
    if (found !== undefined) return [key, ...found];
  }
  return undefined;
}

function refuseProto(path: string) {
  const message = `a key must not be called ${PROTO}`;
  return refuse("invalid_request", `${path}: ${message}`, { issues: [{ path, message }] });
}

function parseJson(bytes: Uint8Array): Result<unknown, ApiRefusal> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
    return ok(text.trim() === "" ? {} : (JSON.parse(text) as unknown));
  } catch {
    return refuse("invalid_json", "The body is not valid JSON in UTF-8.");
  }
}

function tooLarge(bytesMax: number): Result<never, ApiRefusal> {
  return refuse("too_large", `The body is larger than ${bytesMax} bytes.`, { limit_bytes: bytesMax });
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  if (chunks.length === 1 && chunks[0] !== undefined) return chunks[0];
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
