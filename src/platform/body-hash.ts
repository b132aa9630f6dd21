/** What a body is known by: equal for bodies that mean the same JSON, whatever the order of their fields was. */
import { sha256 } from "../agent/sha256.ts";
import { canonicalJson } from "../domain/shared/canonical-json.ts";

export function bodyHash(body: unknown): string {
  return sha256(canonicalJson(body));
}
