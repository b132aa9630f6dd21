/**
 * Which names a webhook may be sent to. Owns the rules over names; numbers are judged where addresses are parsed
 * (`platform/webhook/webhook-target.ts`). A Worker cannot resolve a name, so a public name that leads to a private address
 * passes here (docs/decisions/webhooks.md).
 */

/** Top-level names that no public resolver answers for: they are a network's own, or a machine's. */
const PRIVATE_SUFFIXES = [
  "localhost",
  "localdomain",
  "local",
  "internal",
  "intranet",
  "private",
  "corp",
  "home",
  "home.arpa",
  "lan",
  "test",
  "example",
  "invalid",
  "onion",
] as const;

/** Services that hand out a machine's credentials, under names that are public. */
const METADATA_NAMES = ["metadata.goog", "metadata.azure.com"] as const;

/** Why the name is refused; `undefined` when it may be asked. Takes a name as a URL parser gives it: lower case, no port. */
export function refusedHostName(hostname: string): string | undefined {
  // A trailing dot is the same name, spelled out to the root.
  const name = hostname.replace(/\.+$/, "");
  if (!name.includes(".")) return "is a name without a domain";
  if (under(name, METADATA_NAMES)) return "is a metadata service";
  return under(name, PRIVATE_SUFFIXES) ? "is a name of a private network" : undefined;
}

function under(name: string, suffixes: readonly string[]): boolean {
  return suffixes.some((suffix) => name === suffix || name.endsWith(`.${suffix}`));
}
