import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  ancestorPaths,
  normalizeWorkspacePath,
  parentPath,
  PATH_BYTES_MAX,
  PATH_DEPTH_MAX,
  SEGMENT_BYTES_MAX,
  WORKSPACE_ROOT,
} from "../../../src/domain/workspace/paths.ts";

const accepted: readonly (readonly [string, string])[] = [
  ["a.txt", "/workspace/a.txt"],
  ["./a.txt", "/workspace/a.txt"],
  ["a/./b", "/workspace/a/b"],
  [".", "/workspace"],
  ["./", "/workspace"],
  ["/workspace", "/workspace"],
  ["/workspace/", "/workspace"],
  ["/workspace/data/x.csv", "/workspace/data/x.csv"],
  ["outputs/", "/workspace/outputs"],
  ["...", "/workspace/..."],
  [".hidden/..name", "/workspace/.hidden/..name"],
  ["100% done/größe 😀.md", "/workspace/100% done/größe 😀.md"],
  ["workspace/a", "/workspace/workspace/a"],
];

it.each(accepted)("takes %j as %j", (path, normalized) => {
  expect(normalizeWorkspacePath(path)).toEqual({ ok: true, value: normalized });
});

const refused: readonly (readonly [string, string, RegExp])[] = [
  ["nothing", "", /a path is needed/],
  ["traversal", "../etc/passwd", /\.\. is not allowed/],
  ["traversal that stays inside", "a/../b", /\.\. is not allowed/],
  ["traversal behind the root", "/workspace/../etc", /\.\. is not allowed/],
  ["another root", "/etc/passwd", /below \/workspace/],
  ["a name that only starts like the root", "/workspace2/a", /below \/workspace/],
  ["the host's root", "/", /below \/workspace/],
  ["an empty segment", "a//b", /empty segments/],
  ["two leading slashes", "//workspace/a", /below \/workspace/],
  ["an empty segment behind the root", "/workspace//a", /empty segments/],
  ["two trailing slashes", "a//", /empty segments/],
  ["NUL", "a\0.txt", /control characters/],
  ["a line break", "a\nb", /control characters/],
  ["a backslash", "a\\..\\b", /backslashes/],
  ["an escaped dot", "%2e%2e/a", /percent-escapes/],
  ["an escaped slash", "a%2Fb", /percent-escapes/],
  ["an escaped NUL", "a%00", /percent-escapes/],
  ["a twice escaped dot", "%252e%252e/a", /percent-escapes/],
  ["half a surrogate pair", "a\ud83d", /not well-formed/],
  ["a long segment", "é".repeat(SEGMENT_BYTES_MAX / 2 + 1), /bytes in a name/],
  ["a long path", `${"a".repeat(200)}/`.repeat(6), /bytes in a path/],
  ["a deep path", Array.from({ length: PATH_DEPTH_MAX + 1 }, () => "d").join("/"), /levels/],
];

it.each(refused)("refuses %s with its reason", (_what, path, why) => {
  expect(normalizeWorkspacePath(path)).toMatchObject({ ok: false, error: { reason: "path_refused" } });
  const answer = normalizeWorkspacePath(path);
  expect(answer.ok ? "" : answer.error.why).toMatch(why);
});

const hostile = fc.oneof(
  fc.string({ unit: "binary" }),
  fc
    .array(fc.constantFrom("..", ".", "", "/", "a", "%2e", "\\", "\0", "workspace", "\ud800", "ü"), { maxLength: 12 })
    .map((parts) => parts.join("/")),
  fc
    .array(fc.constantFrom("..", ".", "/", "a", "%", "2e", "\\", "\0", "/workspace"), { maxLength: 20 })
    .map((parts) => parts.join("")),
);

it("never lets a normalised path leave the root, whatever is sent", () => {
  fc.assert(
    fc.property(hostile, (path) => {
      const answer = normalizeWorkspacePath(path);
      if (!answer.ok) return;
      // The URL parser is the independent judge: it resolves dots, escapes and backslashes as a careless layer might.
      const resolved = new URL(`http://x${answer.value.replaceAll("?", "").replaceAll("#", "")}`).pathname;
      expect(resolved === WORKSPACE_ROOT || resolved.startsWith(`${WORKSPACE_ROOT}/`)).toBe(true);
      expect(answer.value.split("/").slice(1)).not.toContain("..");
      expect(new TextEncoder().encode(answer.value).byteLength).toBeLessThanOrEqual(PATH_BYTES_MAX);
      expect(normalizeWorkspacePath(answer.value)).toEqual(answer);
    }),
    { numRuns: 2_000 },
  );
});

it("names the directories between the root and a path", () => {
  expect(ancestorPaths("/workspace/a/b/c")).toEqual(["/workspace/a", "/workspace/a/b"]);
  expect(ancestorPaths("/workspace/a")).toEqual([]);
  expect(parentPath("/workspace/a")).toBe(WORKSPACE_ROOT);
});
