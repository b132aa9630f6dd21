import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { unstable_getVarsForDev } from "wrangler";
import { environmentFile } from "../../../scripts/environment-file.ts";

/** What `wrangler dev --env-file` makes of the file. */
function readBack(text: string): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), "deputy-env-"));
  try {
    const file = join(folder, "dev.env");
    writeFileSync(file, text);
    const read = unstable_getVarsForDev(undefined, [file], {}, undefined, true);
    return Object.fromEntries(Object.entries(read).map(([name, { value }]) => [name, String(value)]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

it("a secret reaches the Worker as it was given, whatever characters it holds", () => {
  const secrets = [
    "plain",
    "it's",
    "a`b",
    'say "hi"',
    "k$HOME",
    "${PATH}",
    String.raw`\$x`,
    String.raw`a\nb`,
    "a#b",
    "a=b c",
  ];
  const variables = Object.fromEntries(
    secrets.map((secret, index) => [`S${index}`, JSON.stringify({ [secret]: secret })]),
  );
  expect(readBack(environmentFile(variables))).toEqual(variables);
});

it("a value that cannot be written is refused by its name, never passed on changed", () => {
  expect(() => environmentFile({ API_KEYS: "'`" })).toThrow("API_KEYS");
});
