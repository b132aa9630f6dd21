/** Links, file names and named tests of the documentation, so that a renamed one is found here and not by a reader. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { OBJECT_SCHEMA } from "../../src/platform/durable-storage/object-schema.ts";

const pages = [
  "README.md",
  "CHANGELOG.md",
  ...readdirSync("docs", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
];

function brokenLinks(page: string): string[] {
  const links = [...readFileSync(page, "utf8").matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, link = ""]) => link);
  return links.filter((link) => !link.includes(":") && !existsSync(join(dirname(page), link)));
}

/** Paths in code marks: of the repository, or below `src/` as the tables write them. */
function missingPaths(page: string): string[] {
  const paths = [...readFileSync(page, "utf8").matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.(?:ts|sql|json|md|csv))`/g)];
  return paths.map(([, path = ""]) => path).filter((path) => !existsSync(path) && !existsSync(join("src", path)));
}

function missingTests(page: string): string[] {
  const named = [...readFileSync(page, "utf8").matchAll(/`(test\/[\w./-]+\.test\.ts) > ([^`]+)`/g)];
  return named
    .filter(([, file = "", name = ""]) => !existsSync(file) || !readFileSync(file, "utf8").includes(name))
    .map(([, file, name]) => `${file} > ${name}`);
}

/** The columns of every table by its name: those it was made with, then those added later. */
function tablesOf(statements: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const bare = statements.map((sql) => sql.replace(/--.*$/gm, ""));
  const created = bare.flatMap((sql) => [
    ...sql.matchAll(/CREATE TABLE (\w+) \(([\s\S]*?)\n?\s*\)(?: WITHOUT ROWID)?;?\s*(?=$|CREATE)/g),
  ]);
  const tables = new Map(
    created.map(([, table = "", body = ""]) => {
      const columns = [...body.matchAll(/(?:^|\n|, |^\s*)\s*([a-z_]+) (?:TEXT|INTEGER|BLOB)/g)].map(
        ([, name = ""]) => name,
      );
      return [table, columns];
    }),
  );
  const added = bare.flatMap((sql) => [...sql.matchAll(/ALTER TABLE (\w+) ADD COLUMN (\w+)/g)]);
  for (const [, table = "", column = ""] of added) tables.get(table)?.push(column);
  return tables;
}

/** As the page's tables begin a row. */
function rowsOf(tables: ReadonlyMap<string, readonly string[]>): string[] {
  return [...tables].map(([table, columns]) => `| \`${table}\` | ${columns.map((name) => `\`${name}\``).join(", ")} |`);
}

/** Folders of `src` and of its two largest layers. */
function sourceFolders(): string[] {
  return ["src", "src/agent", "src/domain"].flatMap((parent) =>
    readdirSync(parent, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name),
  );
}

describe("documentation", () => {
  it("docs/architecture.md shows every folder of the source in its map", () => {
    const [, map = ""] =
      /## Folders and arrows\n\n```\n([\s\S]*?)```/.exec(readFileSync("docs/architecture.md", "utf8")) ?? [];
    const shown = [...map.matchAll(/([\w-]+)\//g)].map(([, name]) => name);
    expect(sourceFolders().filter((name) => !shown.includes(name))).toEqual([]);
    expect(sourceFolders().length).toBeGreaterThan(20);
  });

  it("docs/storage.md has every table with its columns in their order", () => {
    const storage = readFileSync("docs/storage.md", "utf8");
    const own = rowsOf(tablesOf(OBJECT_SCHEMA.flatMap((step) => step.statements)));
    const files = readdirSync("migrations").sort();
    const shared = rowsOf(tablesOf(files.map((name) => readFileSync(join("migrations", name), "utf8"))));
    expect([own.length, shared.length]).toEqual([16, 15]);
    expect([...own, ...shared].filter((row) => !storage.includes(row))).toEqual([]);
  });

  it.each(pages)("%s links only to what is there", (page) => {
    expect(brokenLinks(page)).toEqual([]);
    expect(missingPaths(page)).toEqual([]);
    expect(missingTests(page)).toEqual([]);
  });

  it("every promise names a test", () => {
    const rows = readFileSync("docs/architecture.md", "utf8").match(/^\| [PB]\d \| .*`test\/.* > .*`.*\|$/gm) ?? [];
    const promises = rows.map((row) => row.slice(2, 4)).sort();
    expect(promises.join(" ")).toBe("B1 B2 B3 B4 B5 B6 B7 B8 B9 P1 P2 P3 P4 P5 P6 P7 P8");
  });

  it("every decision is in the README's reach", () => {
    const listed = readFileSync("docs/decisions/README.md", "utf8");
    const decisions = readdirSync("docs/decisions").filter((name) => name !== "README.md");
    expect(decisions.filter((name) => !listed.includes(`(${name})`))).toEqual([]);
  });

  it("docs/decisions/dependencies.md names every dependency with its version", () => {
    const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Record<string, Record<string, string>>;
    const { dependencies, devDependencies, optionalDependencies } = manifest;
    const rows = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
    const page = readFileSync("docs/decisions/dependencies.md", "utf8");
    expect(rows.filter(([name, version]) => !page.includes(`| \`${name}\` | ${version} | `))).toEqual([]);
    expect(page.match(/^\| `/gm)?.length).toBe(rows.length);
  });
});
