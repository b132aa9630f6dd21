/**
 * Which names a webhook may be sent to. Owns the rules over names; numbers are judged where addresses are parsed
 * (`platform/webhook/webhook-target.ts`). A Worker cannot resolve a name, so a public name that leads to a private address
 * passes here (docs/decisions/webhooks.md).
 * Invariant: a name passes when it has the form of a public one and is none of a network's, a cluster's or a machine's own.
 */

/** RFC 1035: of a name as it is written, and of each of its labels. */
const NAME_CHARS_MAX = 253;
const LABEL_CHARS_MAX = 63;

/** No underscore is in a host's name by the standards, but hosts are there that have one. */
const LABEL = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$/;

/** A name's last label in the public tree: letters only, or a name in another script. Two letters are the shortest. */
const PUBLIC_TOP_LEVEL = /^([a-z]{2,}|xn--[a-z0-9-]+)$/;

/** Top-level names that no public resolver answers for: they are a network's own, or a machine's. */
const PRIVATE_SUFFIXES = [
  "alt",
  "arpa",
  "corp",
  "domain",
  "example",
  "home",
  "i2p",
  "internal",
  "intra",
  "intranet",
  "invalid",
  "lan",
  "local",
  "localdomain",
  "localhost",
  "localnet",
  "mail",
  "onion",
  "private",
  "test",
  "workgroup",
] as const;

/**
 * What a cluster's resolver completes: `<service>.<namespace>` and `<service>.<namespace>.svc`. A namespace may have any
 * name; these are the ones that come with a cluster or with what is commonly put into one, and none is in the public tree.
 */
const CLUSTER_SUFFIXES = [
  "argocd",
  "backend",
  "cluster",
  "consul",
  "container",
  "database",
  "default",
  "docker",
  "kube",
  "kubernetes",
  "monitoring",
  "node",
  "pod",
  "production",
  "service",
  "staging",
  "svc",
  "vault",
] as const;

/** Services that hand out a machine's credentials, under names that are public. */
const METADATA_NAMES = [
  "metadata.goog",
  "metadata.azure.com",
  "metadata.packet.net",
  "metadata.platformequinix.com",
  "metadata.tencentyun.com",
] as const;

/** What such services are called in the domains that nobody listed. */
const METADATA_LABELS: ReadonlySet<string> = new Set(["metadata", "instance-data"]);

/** A domain of its own has two labels: `metadata.io` is a company. */
const LABELS_OF_A_HOST = 3;

/** Why the name is refused; `undefined` when it may be asked. Takes a name as a URL parser gives it: lower case, no port. */
export function refusedHostName(hostname: string): string | undefined {
  // One trailing dot is the same name, spelled out to the root; a second one is an empty label.
  const name = hostname.replace(/\.$/, "");
  const labels = name.split(".");
  if (labels.length < 2) return "is a name without a domain";
  if (under(name, METADATA_NAMES) || isNamedLikeMetadata(labels)) return "is a metadata service by its name";
  if (under(name, PRIVATE_SUFFIXES)) return "is a name of a private network";
  if (under(name, CLUSTER_SUFFIXES)) return "is a name inside a cluster";
  return malformed(name, labels);
}

function malformed(name: string, labels: readonly string[]): string | undefined {
  if (name.length > NAME_CHARS_MAX) return `is longer than ${NAME_CHARS_MAX} characters`;
  if (labels.includes("")) return "has an empty label";
  if (labels.some((label) => label.length > LABEL_CHARS_MAX)) {
    return `has a label of more than ${LABEL_CHARS_MAX} characters`;
  }
  if (!labels.every((label) => LABEL.test(label))) {
    return "has a label that is not made of letters, digits and inner hyphens";
  }
  return PUBLIC_TOP_LEVEL.test(labels.at(-1) ?? "") ? undefined : "does not end with a public top-level name";
}

function isNamedLikeMetadata(labels: readonly string[]): boolean {
  return labels.length >= LABELS_OF_A_HOST && METADATA_LABELS.has(labels[0] ?? "");
}

function under(name: string, suffixes: readonly string[]): boolean {
  return suffixes.some((suffix) => name === suffix || name.endsWith(`.${suffix}`));
}
