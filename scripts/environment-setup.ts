/**
 * Makes what an environment of Deputy needs in a Cloudflare account, and says what is left to do. Safe to repeat: what
 * exists is left alone. Owns the order of the steps; wrangler runs them.
 */
import { type DeployedConfig, isPlaceholder } from "./deploy-config.ts";

export interface WranglerAnswer {
  readonly ok: boolean;
  /** What the command printed. */
  readonly output: string;
}

export interface Wrangler {
  /** Reads only. */
  ask(args: readonly string[]): Promise<WranglerAnswer>;
  /** Changes the account. `input` goes to the command's standard input and is never printed. */
  change(args: readonly string[], input?: string): Promise<WranglerAnswer>;
}

export interface EnvironmentSetup {
  readonly environment: string;
  readonly config: DeployedConfig;
  readonly wrangler: Wrangler;
  /** Where secrets are taken from: the caller's environment. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly say: (line: string) => void;
  /** Nothing is asked or changed: every command that may be needed is given to `wrangler` once. */
  readonly isDryRun: boolean;
}

/** Secrets of the Worker (src/env.ts). A missing one is left as the account has it. */
const SECRETS = [
  "API_KEYS",
  "OPENAI_API_KEY",
  "OPENAI_BASE_URL",
  "OPENAI_MODEL",
  "ANTHROPIC_API_KEY",
  "ANTHROPIC_BASE_URL",
  "ANTHROPIC_MODEL",
  "WEBHOOK_SECRET",
] as const;

export class SetupError extends Error {
  override readonly name = "SetupError";
}

/** Throws `SetupError` with wrangler's own words when a step fails. `unfinished`: an id has to be put into the file. */
export async function setUpEnvironment(setup: EnvironmentSetup): Promise<"ready" | "unfinished"> {
  const named = await ensureDatabases(setup);
  await ensureQueues(setup);
  if (!named) return "unfinished";
  await applyMigrations(setup);
  await putSecrets(setup);
  setup.say(`next: npm run deploy -- --env ${setup.environment}`);
  return "ready";
}

/** False when `wrangler.toml` does not have a database's id yet. */
async function ensureDatabases(setup: EnvironmentSetup): Promise<boolean> {
  const { config, environment, say, isDryRun } = setup;
  let isNamed = true;
  for (const { binding, database_name = "", database_id = "" } of config.d1_databases) {
    const id = await ensureDatabase(setup, database_name);
    if (id === database_id || (isDryRun && !isPlaceholder(database_id))) continue;
    say(`wrangler.toml, [[env.${environment}.d1_databases]] of ${binding}: database_id = "${id}"`);
    isNamed = isDryRun;
  }
  if (!isNamed) say(`put it there, commit it, and run npm run setup -- --env ${environment} again`);
  return isNamed;
}

async function ensureDatabase(setup: EnvironmentSetup, name: string): Promise<string> {
  const { say, isDryRun } = setup;
  const existing = isDryRun ? undefined : await findDatabase(setup, name);
  if (existing !== undefined) {
    say(`database ${name} exists`);
    return existing;
  }
  await change(setup, ["d1", "create", name, "--update-config=false"]);
  if (isDryRun) return "<the id it printed>";
  const created = await findDatabase(setup, name);
  if (created === undefined) throw new SetupError(`database ${name} was created and is not listed`);
  say(`database ${name} created`);
  return created;
}

async function findDatabase({ wrangler }: EnvironmentSetup, name: string): Promise<string | undefined> {
  const { ok, output } = await wrangler.ask(["d1", "list", "--json"]);
  if (!ok) throw new SetupError(`databases could not be listed:\n${output}`);
  const databases = JSON.parse(output) as { name: string; uuid: string }[];
  return databases.find((database) => database.name === name)?.uuid;
}

/** The dead-letter queue first: a queue's consumer names it. */
async function ensureQueues(setup: EnvironmentSetup): Promise<void> {
  const consumers = setup.config.queues.consumers ?? [];
  const names = [
    ...consumers.map(({ dead_letter_queue }) => dead_letter_queue),
    ...consumers.map(({ queue }) => queue),
  ];
  for (const name of new Set(names.filter((each) => each !== undefined))) await ensureQueue(setup, name);
}

async function ensureQueue(setup: EnvironmentSetup, name: string): Promise<void> {
  const { say, isDryRun, wrangler } = setup;
  if (!isDryRun) {
    const found = await wrangler.ask(["queues", "info", name]);
    if (found.ok) return say(`queue ${name} exists`);
    if (!found.output.includes("does not exist")) {
      throw new SetupError(`queue ${name} could not be looked up:\n${found.output}`);
    }
  }
  await change(setup, ["queues", "create", name]);
  if (!isDryRun) say(`queue ${name} created`);
}

async function applyMigrations(setup: EnvironmentSetup): Promise<void> {
  for (const { binding } of setup.config.d1_databases) {
    await change(setup, ["d1", "migrations", "apply", binding, "--remote", "--env", setup.environment]);
    if (!setup.isDryRun) setup.say(`migrations of ${binding} are applied`);
  }
}

/** All in one command, through standard input: they are in no process list and no shell history. */
async function putSecrets(setup: EnvironmentSetup): Promise<void> {
  const { variables, say, environment, isDryRun } = setup;
  const given = SECRETS.filter((name) => (variables[name] ?? "") !== "");
  const values = Object.fromEntries(given.map((name) => [name, variables[name]]));
  if (given.length > 0) await change(setup, ["secret", "bulk", "--env", environment], JSON.stringify(values));
  for (const name of SECRETS) {
    if (!given.includes(name)) say(`secret ${name}: not in your environment, left as it is`);
    else if (!isDryRun) say(`secret ${name} is set`);
  }
}

async function change({ wrangler }: EnvironmentSetup, args: readonly string[], input?: string): Promise<void> {
  const { ok, output } = await wrangler.change(args, input);
  if (!ok) throw new SetupError(`wrangler ${args.join(" ")} failed:\n${output}`);
}
