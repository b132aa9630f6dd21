/**
 * The text of the file in which variables reach `wrangler dev`. Owns its quoting: wrangler reads such a file with dotenv
 * and then expands `$NAME`, so a key or a secret must be written such that it comes out as it went in.
 */

/** Throws where a value can be written in no way that is read back as itself. */
export function environmentFile(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${quoted(name, value)}\n`)
    .join("");
}

/** Double quotes are no choice: inside them dotenv reads `\n` as a line end. */
function quoted(name: string, value: string): string {
  const quote = ["'", "`"].find((each) => !value.includes(each));
  if (quote === undefined) throw new Error(`${name} holds both ' and \`, which an environment file cannot carry`);
  return `${quote}${value.replaceAll("$", String.raw`\$`)}${quote}`;
}
