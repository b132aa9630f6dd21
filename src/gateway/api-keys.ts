/**
 * `API_KEYS`: parses the secret and finds the principal of a presented key. Invariants: keys are compared as SHA-256
 * digests, every configured one each time, without an early end, so that time tells nothing about them; a secret that
 * cannot be read opens nothing.
 */
import { z } from "zod";
import type { Principal } from "../domain/trust/principal.ts";

const OWNER_CHARS_MAX = 128;

const apiKeysSchema = z.record(
  z.string().min(1),
  z.strictObject({ owner: z.string().min(1).max(OWNER_CHARS_MAX), role: z.enum(["user", "admin"]) }),
);

interface KeyEntry {
  readonly digest: Uint8Array;
  readonly principal: Principal;
}

/** The configured keys, or null when the secret is unreadable or names no key. */
export async function parseApiKeys(secret: string): Promise<readonly KeyEntry[] | null> {
  const parsed = apiKeysSchema.safeParse(parseJson(secret));
  if (!parsed.success) return null;
  const entries = Object.entries(parsed.data);
  if (entries.length === 0) return null;
  return Promise.all(entries.map(async ([key, principal]) => ({ digest: await sha256(key), principal })));
}

export async function findPrincipal(keys: readonly KeyEntry[], presented: string): Promise<Principal | null> {
  const digest = await sha256(presented);
  let found: Principal | null = null;
  for (const entry of keys) if (equalBytes(entry.digest, digest)) found = entry.principal;
  return found;
}

/** `Authorization: Bearer` first, then `x-api-key`, which the LangGraph SDK sends. */
export function presentedKey(headers: Headers): string | null {
  const bearer = /^Bearer +(\S+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  return bearer ?? headers.get("x-api-key");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

async function sha256(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  let difference = left.length ^ right.length;
  for (let index = 0; index < left.length; index++) difference |= (left[index] ?? 0) ^ (right[index] ?? 0);
  return difference === 0;
}
