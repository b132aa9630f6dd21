/**
 * Object SQLite with the schema, and workspaces over it. A second `wake` is a second instance over the same storage:
 * what a restart finds.
 */
import { env, runInDurableObject } from "cloudflare:test";
import { ensureSchema } from "../../src/platform/durable-storage/object-schema.ts";
import { MeteredSql } from "../../src/platform/durable-storage/metered-sql.ts";
import { DurableWorkspace } from "../../src/platform/workspace/durable-workspace.ts";
import { StagedWorkspace } from "../../src/platform/workspace/staged-workspace.ts";

export interface WokenWorkspace {
  readonly storage: DurableObjectStorage;
  readonly meter: MeteredSql;
  readonly workspace: DurableWorkspace;
  readonly staging: StagedWorkspace;
}

export function wake(storage: DurableObjectStorage, now: () => number = () => 1_000): WokenWorkspace {
  const meter = new MeteredSql(storage.sql);
  const workspace = new DurableWorkspace({ sql: meter.labelled("workspace"), now });
  return { storage, meter, workspace, staging: new StagedWorkspace(workspace) };
}

/** Runs `work` in a fresh object with its schema. */
export async function inFreshObject<T>(name: string, work: (woken: WokenWorkspace) => T | Promise<T>): Promise<T> {
  const stub = env.THREADS.get(env.THREADS.idFromName(`workspace:${name}`));
  return runInDurableObject(stub, async (_instance, state) => {
    ensureSchema(state.storage);
    return work(wake(state.storage));
  });
}
