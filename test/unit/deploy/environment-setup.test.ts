/**
 * The set-up against an account in memory that answers as wrangler does. What wrangler does with a command is its own
 * matter; which commands are given, in which order and with which input is ours.
 */
import { describe, expect, it } from "vitest";
import type { DeployedConfig } from "../../../scripts/deploy-config.ts";
import {
  setUpEnvironment,
  SetupError,
  type Wrangler,
  type WranglerAnswer,
} from "../../../scripts/environment-setup.ts";
import { readDeployConfig } from "../../../scripts/read-deploy-config.ts";

class FakeAccount implements Wrangler {
  readonly databases = new Map<string, string>();
  readonly queues = new Set<string>();
  readonly changes: string[] = [];
  secrets: Record<string, string> = {};
  refusal: string | undefined;

  async ask([group, verb, name = ""]: readonly string[]): Promise<WranglerAnswer> {
    if (this.refusal !== undefined) return { ok: false, output: this.refusal };
    if (group === "d1" && verb === "list") {
      return { ok: true, output: JSON.stringify([...this.databases].map(([each, uuid]) => ({ name: each, uuid }))) };
    }
    return this.queues.has(name) ? { ok: true, output: "" } : { ok: false, output: `Queue "${name}" does not exist.` };
  }

  async change(args: readonly string[], input?: string): Promise<WranglerAnswer> {
    this.changes.push(args.join(" "));
    const [group, verb, name = ""] = args;
    if (group === "d1" && verb === "create") this.databases.set(name, "11111111-2222-3333-4444-555555555555");
    if (group === "queues") this.queues.add(name);
    if (group === "secret") Object.assign(this.secrets, JSON.parse(input ?? "{}"));
    return { ok: true, output: "" };
  }
}

const WITHOUT_ID = readDeployConfig("staging");
const WITH_ID: DeployedConfig = {
  ...WITHOUT_ID,
  d1_databases: WITHOUT_ID.d1_databases.map((database) => ({
    ...database,
    database_id: "11111111-2222-3333-4444-555555555555",
  })),
};

function setUp(wrangler: Wrangler, config: DeployedConfig, variables: Record<string, string> = {}) {
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  const end = setUpEnvironment({ environment: "staging", config, wrangler, variables, say, isDryRun: false });
  return { end, lines };
}

describe("setting up an environment", () => {
  it("makes database and queues, and stops with the id to write down before it migrates anything", async () => {
    const account = new FakeAccount();
    const { end, lines } = setUp(account, WITHOUT_ID);
    expect(await end).toBe("unfinished");
    expect(lines.join("\n")).toContain('database_id = "11111111-2222-3333-4444-555555555555"');
    expect(account.changes).toEqual([
      "d1 create deputy-staging --update-config=false",
      "queues create deputy-staging-batch-dead-letters",
      "queues create deputy-staging-batch-wakes",
    ]);
  });

  it("goes on from there, and a repeat creates nothing a second time", async () => {
    const account = new FakeAccount();
    await setUp(account, WITHOUT_ID).end;
    account.changes.length = 0;
    expect(await setUp(account, WITH_ID).end).toBe("ready");
    expect(await setUp(account, WITH_ID).end).toBe("ready");
    const migrate = "d1 migrations apply DB --remote --env staging";
    expect(account.changes).toEqual([migrate, migrate]);
  });

  it("gives secrets through standard input only, and leaves those it was not given", async () => {
    const account = new FakeAccount();
    account.secrets = { OPENAI_API_KEY: "kept" };
    await setUp(account, WITHOUT_ID).end;
    const keys = '{"k-1":{"owner":"alice","role":"admin"}}';
    const { end, lines } = setUp(account, WITH_ID, { API_KEYS: keys, OPENAI_MODEL: "", PATH: "/bin" });
    await end;
    expect(account.secrets).toEqual({ OPENAI_API_KEY: "kept", API_KEYS: keys });
    expect([...account.changes, ...lines].join("\n")).not.toContain("k-1");
    expect(lines).toContain("secret OPENAI_MODEL: not in your environment, left as it is");
  });

  it("does not take an account it cannot read for an empty one", async () => {
    const account = new FakeAccount();
    account.refusal = "Authentication error [code: 10000]";
    await expect(setUp(account, WITH_ID).end).rejects.toThrow(SetupError);
    expect(account.changes).toEqual([]);
  });
});
