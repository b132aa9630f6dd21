import { describe, expect, it } from "vitest";
import { inFreshObject, wake } from "../support/workspace-object.ts";
import { workspaceSessionSuite } from "../support/workspace-session-suite.ts";

let runs = 0;

describe("WorkspaceSession over object SQLite", () => {
  workspaceSessionSuite(async (work) => {
    runs += 1;
    await inFreshObject(`contract-${runs}`, ({ storage, staging }) => {
      const settled = () => {
        storage.transactionSync(() => staging.commit("call_1"));
        return wake(storage).staging.open("call_2");
      };
      work({ session: staging.open("call_1"), settled });
      const counted = storage.sql.exec("SELECT total(size) AS bytes, count(*) AS entries FROM workspace_entries").one();
      const head = storage.sql.exec("SELECT bytes, entries FROM workspace_head").toArray()[0];
      expect(head ?? { bytes: 0, entries: 0 }).toEqual(counted);
    });
  });

  it("keeps a sequence of calls equal to one session: each builds on what the ones before committed", async () => {
    await inFreshObject("contract-calls", ({ storage, staging }) => {
      const steps = ["a/b", "a/b/c", "a", "d/e", "d/e"];
      for (const [at, path] of steps.entries()) {
        const session = staging.open(`call_${at}`);
        if (session.stat(path).ok) session.remove(path, { recursive: true });
        session.append(path, new TextEncoder().encode(path));
        storage.transactionSync(() => staging.commit(`call_${at}`));
      }
      const files = wake(storage).staging.open("reader").walk(".");
      expect(files.ok && files.value.map(({ path, size }) => [path, size])).toEqual([
        ["/workspace/a", 1],
        ["/workspace/d/e", 3],
      ]);
    });
  });
});
