/**
 * Whether a webhook may be sent to a URL: asked when a run is accepted, before every attempt, and of every redirect.
 * Owns the judgement of addresses in every spelling; names are judged by `domain/webhook/host-name.ts`.
 * Invariant: only what is known to be public passes. A number is public when it is plain unicast; forms that carry another
 * address inside (mapped, translated, tunnelled) are refused whatever they carry.
 */
import ipaddr from "ipaddr.js";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import { refusedHostName } from "../../domain/webhook/host-name.ts";

/** Longer ones are no address of a service. */
export const WEBHOOK_URL_CHARS_MAX = 2_048;

/** Azure's host agent: a public number that is a machine's own. */
const METADATA_ADDRESSES: ReadonlySet<string> = new Set(["168.63.129.16"]);

/** Addresses that the internet routes: of the rest nothing is known. */
const GLOBAL_UNICAST_V6 = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * The parsed target, or why it is refused, as the end of a sentence that begins with the option's name.
 * `allowedHosts`: `host` or `host:port` that the operator allows whatever it is, over http too.
 */
export function checkWebhookTarget(given: string, allowedHosts: readonly string[]): Result<URL, string> {
  if (given.length > WEBHOOK_URL_CHARS_MAX) return err(`must have at most ${WEBHOOK_URL_CHARS_MAX} characters`);
  const url = parseUrl(given);
  if (url === undefined) return err("must be an absolute https: URL");
  if (url.protocol !== "https:" && url.protocol !== "http:") return err("must be an https: URL");
  if (url.username !== "" || url.password !== "") return err("must not carry a user name or password");
  if (allowedHosts.includes(url.host) || allowedHosts.includes(url.hostname)) return ok(url);
  if (url.protocol !== "https:") return err("must be an https: URL");
  const refused = refusedHost(url.hostname);
  return refused === undefined ? ok(url) : err(`must be a public address: its host ${refused}`);
}

function parseUrl(given: string): URL | undefined {
  // A parser would drop tabs and line breaks, so that what was checked is not what a log shows.
  if (/[\s\\]/.test(given)) return undefined;
  try {
    return new URL(given);
  } catch {
    return undefined;
  }
}

/** The parser has made numbers of any base and shape into dotted decimals, and IPv6 into brackets. */
function refusedHost(hostname: string): string | undefined {
  const literal = hostname.replace(/^\[|\]$|\.$/g, "");
  if (!ipaddr.isValid(literal)) return refusedHostName(hostname);
  const address = ipaddr.parse(literal);
  const isGlobal = address.kind() === "ipv4" || (address as ipaddr.IPv6).match(GLOBAL_UNICAST_V6);
  if (!isGlobal || address.range() !== "unicast") return `is in the range ${address.range()}`;
  return METADATA_ADDRESSES.has(address.toString()) ? "is a metadata service" : undefined;
}
