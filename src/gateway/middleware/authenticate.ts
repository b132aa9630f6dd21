/**
 * Decides who asks (architecture section 10). Ownership comes from the key alone: no header, path or body names an
 * owner. Without `API_KEYS` every request is refused, except under `npm run dev`, which sets `DEV_OWNER`; there a page
 * of a foreign origin is refused, because any site a developer visits could reach the open port.
 */
import { type Result, ok } from "../../domain/shared/result.ts";
import type { ApiRefusal } from "../../protocol/errors.ts";
import type { Principal } from "../../domain/trust/principal.ts";
import { findPrincipal, parseApiKeys, presentedKey } from "../api-keys.ts";
import { refuse } from "../errors.ts";

export interface AuthSettings {
  readonly apiKeys: string | undefined;
  readonly devOwner: string | undefined;
}

export type Authenticate = (headers: Headers) => Promise<Result<Principal, ApiRefusal>>;

const LOOPBACK = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

/** Parses the secret once, at the first request. */
export function createAuthenticate(settings: AuthSettings): Authenticate {
  let keys: ReturnType<typeof parseApiKeys> | undefined;
  return async (headers) => {
    if (settings.apiKeys === undefined || settings.apiKeys === "") return devPrincipal(settings.devOwner, headers);
    keys ??= parseApiKeys(settings.apiKeys);
    const configured = await keys;
    if (configured === null) return refuse("auth_not_configured", "API_KEYS is not valid; see docs/http-api.md.");
    const presented = presentedKey(headers);
    const principal = presented === null ? null : await findPrincipal(configured, presented);
    return principal === null ? refuse("unauthorized", "A valid API key is required.") : ok(principal);
  };
}

function devPrincipal(devOwner: string | undefined, headers: Headers): Result<Principal, ApiRefusal> {
  if (devOwner === undefined || devOwner === "") {
    return refuse("auth_not_configured", "No API keys are configured; see docs/http-api.md.");
  }
  const origin = headers.get("origin");
  if (origin !== null && !LOOPBACK.test(origin)) {
    return refuse("forbidden", "Without API_KEYS only pages on localhost may call.");
  }
  return ok({ owner: devOwner, role: "admin" });
}
