/**
 * What must hold of `wrangler.toml` before it is deployed: every environment binds all of `Env`, declares the object
 * class and its migration, consumes its queue and the queue's dead letters, and shares no resource with another one.
 * Pure: the caller reads the files. An environment inherits no binding from the top level, so a forgotten one would be
 * found by the first request that needs it.
 */

/** The parts of wrangler's resolved configuration that the check reads. */
export interface DeployedConfig {
  readonly name?: string | undefined;
  readonly durable_objects: { readonly bindings: readonly { name: string; class_name: string }[] };
  readonly migrations: readonly { tag: string; new_sqlite_classes?: readonly string[] | undefined }[];
  readonly d1_databases: readonly {
    binding: string;
    database_name?: string | undefined;
    database_id?: string | undefined;
    migrations_dir?: string | undefined;
  }[];
  readonly queues: {
    readonly producers?: readonly { binding: string; queue: string }[] | undefined;
    readonly consumers?: readonly QueueConsumer[] | undefined;
  };
  readonly triggers: { readonly crons?: readonly string[] | undefined };
  readonly vars: Readonly<Record<string, unknown>>;
  readonly ai?: { readonly binding: string } | undefined;
}

interface QueueConsumer {
  readonly queue: string;
  readonly max_batch_size?: number | undefined;
  readonly max_batch_timeout?: number | undefined;
  readonly max_retries?: number | undefined;
  readonly dead_letter_queue?: string | undefined;
}

/** What the code expects, read from its source. */
export interface ExpectedByCode {
  /** Required fields of `Env`, name → type. */
  readonly bindings: ReadonlyMap<string, string>;
  /** Classes that `src/worker.ts` exports. */
  readonly classes: readonly string[];
  /** Directories with at least one `.sql` file. */
  readonly migrationsDirs: readonly string[];
}

/** What `src/env.ts` calls Workers AI: bound where there is an account, so not where `npm run dev` runs. */
const AI_BINDING = "AI";

/** `src/worker.ts` tells the dead-letter queue from the other one by the end of its name. */
const DEAD_LETTERS = /dead-letters$/;

/** The required fields of `interface Env`: bindings. Optional ones are variables and secrets. */
export function parseBindings(envSource: string): ReadonlyMap<string, string> {
  const body = /export interface Env \{\n([\s\S]*?)\n\}/.exec(envSource)?.[1] ?? "";
  const fields = [...body.matchAll(/^ {2}([A-Z0-9_]+): ([A-Za-z0-9]+)/gm)];
  return new Map(fields.map(([, name = "", type = ""]) => [name, type]));
}

export function parseExportedClasses(workerSource: string): string[] {
  return [...workerSource.matchAll(/^export class (\w+)/gm)].map(([, name = ""]) => name);
}

/** One sentence a problem, each starting with the environment's name; empty when the configuration may be deployed. */
export function findConfigProblems(
  configs: ReadonlyMap<string, DeployedConfig>,
  expected: ExpectedByCode,
): readonly string[] {
  const problems = [...configs].flatMap(([environment, config]) =>
    [
      ...findMissingBindings(config, expected),
      ...findObjectProblems(config, expected),
      ...findQueueProblems(config),
      ...findDatabaseProblems(config, expected),
      ...findTriggerProblems(config),
      ...findAiProblems(config, environment),
    ].map((problem) => `${environment}: ${problem}`),
  );
  if (expected.bindings.size === 0) problems.push("src/env.ts: no binding was found in interface Env");
  return [...problems, ...findDifferences(configs), ...findShared(configs)];
}

function findMissingBindings(config: DeployedConfig, { bindings }: ExpectedByCode): string[] {
  const bound: Record<string, readonly string[]> = {
    D1Database: config.d1_databases.map(({ binding }) => binding),
    DurableObjectNamespace: config.durable_objects.bindings.map(({ name }) => name),
    Queue: (config.queues.producers ?? []).map(({ binding }) => binding),
  };
  return [...bindings].flatMap(([name, type]) => {
    if (bound[type] === undefined) return [`binding ${name} of src/env.ts has the type ${type}, which has no check`];
    return bound[type].includes(name) ? [] : [`no ${type} is bound as ${name}`];
  });
}

function findObjectProblems(config: DeployedConfig, { classes }: ExpectedByCode): string[] {
  const migrated = config.migrations.flatMap((migration) => migration.new_sqlite_classes ?? []);
  return config.durable_objects.bindings.flatMap(({ class_name }) => [
    ...(classes.includes(class_name) ? [] : [`src/worker.ts exports no class ${class_name}`]),
    ...(migrated.includes(class_name) ? [] : [`no migration tag creates ${class_name} with new_sqlite_classes`]),
  ]);
}

function findQueueProblems({ queues }: DeployedConfig): string[] {
  const consumers = queues.consumers ?? [];
  return (queues.producers ?? []).flatMap(({ queue }) => {
    const consumer = consumers.find((each) => each.queue === queue);
    if (consumer === undefined) return [`queue ${queue} has no consumer`];
    const dead = consumer.dead_letter_queue;
    if (dead === undefined) return [`queue ${queue} has no dead_letter_queue`];
    return [
      ...(DEAD_LETTERS.test(queue) ? [`queue ${queue} must not end in dead-letters`] : []),
      ...(DEAD_LETTERS.test(dead) ? [] : [`dead-letter queue ${dead} must end in dead-letters`]),
      ...(consumers.some((each) => each.queue === dead) ? [] : [`dead-letter queue ${dead} has no consumer`]),
    ];
  });
}

function findDatabaseProblems({ d1_databases }: DeployedConfig, { migrationsDirs }: ExpectedByCode): string[] {
  return d1_databases.flatMap(({ binding, migrations_dir }) =>
    migrations_dir !== undefined && migrationsDirs.includes(migrations_dir)
      ? []
      : [`database ${binding}: migrations_dir ${migrations_dir ?? "(none)"} holds no migrations`],
  );
}

function findTriggerProblems({ triggers, vars }: DeployedConfig): string[] {
  return [
    ...((triggers.crons ?? []).length > 0 ? [] : ["no cron trigger: batches whose alarm was lost would stay"]),
    ...("TEST_ROUTES" in vars ? ["TEST_ROUTES is set: routes for tests are for tests"] : []),
    ...("DEV_OWNER" in vars ? ["DEV_OWNER is set: every request without a key would be let in"] : []),
  ];
}

function findAiProblems({ ai }: DeployedConfig, environment: string): string[] {
  if (environment === "default") {
    return ai === undefined ? [] : ["Workers AI is bound, which stops `wrangler dev` without an account"];
  }
  return ai?.binding === AI_BINDING ? [] : [`Workers AI is not bound as ${AI_BINDING}`];
}

/** How a consumer behaves is the same everywhere, so that staging shows what production will do. */
function findDifferences(configs: ReadonlyMap<string, DeployedConfig>): string[] {
  const shapes = [...configs].map(([environment, config]) => [environment, toShape(config)] as const);
  const [first] = shapes;
  return shapes
    .filter(([, shape]) => first !== undefined && shape !== first[1])
    .map(([environment]) => `${environment}: consumers, migrations or crons differ from ${first?.[0]}`);
}

function toShape({ queues, migrations, triggers }: DeployedConfig): string {
  const consumers = (queues.consumers ?? []).map(({ queue, dead_letter_queue, ...rest }) => [
    DEAD_LETTERS.test(queue),
    dead_letter_queue !== undefined,
    Object.entries(rest).sort(([a], [b]) => a.localeCompare(b)),
  ]);
  return JSON.stringify([consumers, migrations, triggers.crons]);
}

/** Two environments that share a queue or a database would take each other's work. */
function findShared(configs: ReadonlyMap<string, DeployedConfig>): string[] {
  const users = new Map<string, string[]>();
  for (const [environment, config] of configs) {
    for (const resource of resourcesOf(config)) users.set(resource, [...(users.get(resource) ?? []), environment]);
  }
  return [...users]
    .filter(([, environments]) => environments.length > 1)
    .map(([resource, environments]) => `${environments.join(", ")}: ${resource} is shared`);
}

function resourcesOf({ name, d1_databases, queues }: DeployedConfig): string[] {
  const databases = d1_databases.flatMap(({ database_name, database_id }) => [
    `database ${database_name}`,
    ...(database_id === undefined || isPlaceholder(database_id) ? [] : [`database id ${database_id}`]),
  ]);
  return [
    `worker ${name}`,
    ...databases,
    ...new Set((queues.consumers ?? []).map(({ queue }) => `consumer of queue ${queue}`)),
    ...(queues.producers ?? []).map(({ queue }) => `queue ${queue}`),
  ];
}

/** As the repository has it, before `npm run setup` said what the real id is. */
export function isPlaceholder(databaseId: string): boolean {
  return /^[0-]*$/.test(databaseId);
}
