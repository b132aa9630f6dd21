import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { OPERATIONS } from "../../../src/gateway/app.ts";
import { STATUS_BY_CODE } from "../../../src/protocol/errors.ts";
import { UNSUPPORTED_RUN_OPTIONS, UNSUPPORTED_RUN_VALUES } from "../../../src/protocol/runs.ts";

const httpApi = readFileSync("docs/http-api.md", "utf8");

/** `/threads/:thread_id/…` as the document writes it. */
function written(path: string): string {
  return path
    .replace("/:path{[\\s\\S]*}", "/{path}")
    .replace(":thread_id", "{t}")
    .replace(":run_id", "{r}")
    .replace(":batch_id", "{b}")
    .replace(/:(\w+)/g, "{$1}");
}

it("docs/http-api.md has every route, every error code with its status, and every refused option", () => {
  for (const { spec } of OPERATIONS) {
    const route = `\`${spec.method.toUpperCase()} ${written(spec.path)}`;
    const found = ["`", "?"].some((end) => httpApi.includes(route + end));
    expect(found, route).toBe(true);
  }
  for (const [code, status] of Object.entries(STATUS_BY_CODE)) expect(httpApi).toContain(`| ${status} | \`${code}\` |`);
  for (const option of UNSUPPORTED_RUN_OPTIONS) expect(httpApi).toContain(`\`${option}\``);
  for (const [option, values] of Object.entries(UNSUPPORTED_RUN_VALUES)) {
    for (const value of [option, ...values]) expect(httpApi).toContain(`\`${value}\``);
  }
});
