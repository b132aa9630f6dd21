/**
 * Where the Worker's CPU goes under a load: V8's profile over the inspector, its samples summed by the part of the
 * repository or the package that the running function is from; what the runtime itself does (a statement, a request to D1)
 * counts for whoever called it. The bundle says where each function is from in comments. Time in which workerd runs no
 * JavaScript of the Worker is not in it: D1 is another isolate.
 */
import { Inspector } from "./inspector.ts";

const SAMPLE_MICROSECONDS = 200;
const WAKE_MS = 50;
/** Areas below this share are told together. */
const SHARE_MIN = 0.01;

interface ProfileNode {
  readonly id: number;
  readonly children?: readonly number[];
  readonly callFrame: { readonly functionName: string; readonly scriptId: string; readonly lineNumber: number };
}

interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

export interface AreaShare {
  readonly area: string;
  /** 0 to 1, of the time that is not idle. */
  readonly share: number;
}

export interface ProfiledLoad {
  readonly inspectorPort: number;
  /** Makes the Worker serve something: an idle isolate does not answer the inspector. */
  readonly wake: () => Promise<unknown>;
  readonly load: () => Promise<unknown>;
}

/** Largest first. */
export async function profiledAreas({ inspectorPort, wake, load }: ProfiledLoad): Promise<AreaShare[]> {
  const inspector = await Inspector.open(inspectorPort);
  const waking = setInterval(() => {
    wake().catch(() => undefined);
  }, WAKE_MS);
  try {
    const bundleId = bundleOf(inspector);
    await inspector.call("Debugger.enable");
    const scriptId = await bundleId;
    const { scriptSource } = (await inspector.call("Debugger.getScriptSource", { scriptId })) as {
      scriptSource: string;
    };
    await inspector.call("Debugger.disable");
    await inspector.call("Profiler.enable");
    await inspector.call("Profiler.setSamplingInterval", { interval: SAMPLE_MICROSECONDS });
    await inspector.call("Profiler.start");
    await load();
    const { profile } = (await inspector.call("Profiler.stop")) as { profile: CpuProfile };
    return sharesOf(profile, { scriptId, areas: areasByLine(scriptSource) });
  } finally {
    clearInterval(waking);
    inspector.close();
  }
}

/** The largest script by far is the bundle. */
function bundleOf(inspector: Inspector): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  inspector.on("Debugger.scriptParsed", (params) => {
    const { scriptId, endLine } = params as { scriptId: string; endLine: number };
    if (endLine > 10_000) resolve(scriptId);
  });
  return promise;
}

/** esbuild writes a comment with the path before each module. */
function areasByLine(source: string): string[] {
  let area = "the bundle's own";
  return source.split("\n").map((line) => {
    const path = /^\s*\/\/ ([\w@./-]+\.(?:ts|js|mjs|cjs|json))$/.exec(line)?.[1];
    if (path !== undefined) area = toArea(path);
    return area;
  });
}

function toArea(path: string): string {
  const inPackage = path.split("node_modules/").at(-1) ?? path;
  if (inPackage !== path) {
    const [scope = "", name = ""] = inPackage.split("/");
    return scope.startsWith("@") ? `${scope}/${name}` : scope;
  }
  const [, own] = /(?:^|\/)(src\/.*)$/.exec(path) ?? [];
  return own === undefined ? "bench" : own.split("/").slice(0, -1).slice(0, 3).join("/");
}

function sharesOf(
  { nodes, samples, timeDeltas }: CpuProfile,
  { scriptId, areas }: { readonly scriptId: string; readonly areas: readonly string[] },
): AreaShare[] {
  const parentOf = new Map(nodes.flatMap(({ id, children }) => (children ?? []).map((child) => [child, id] as const)));
  const nodeOf = new Map(nodes.map((node) => [node.id, node]));
  const ownArea = ({ callFrame }: ProfileNode): string | undefined => {
    if (callFrame.scriptId === scriptId) return areas[callFrame.lineNumber] ?? "the bundle's own";
    const isVirtual = callFrame.functionName.startsWith("(") && callFrame.functionName !== "(root)";
    return isVirtual ? callFrame.functionName : undefined;
  };
  /** Its own, or that of the nearest caller that has one. */
  const areaOf = (of: number): string => {
    for (let id: number | undefined = of; id !== undefined; id = parentOf.get(id)) {
      const node = nodeOf.get(id);
      const area = node && ownArea(node);
      if (area !== undefined) return area;
    }
    return "workerd";
  };
  const spent = new Map<string, number>();
  for (const [index, id] of samples.entries()) {
    const area = areaOf(id);
    // A sample that stands for much more than its interval is of a process that waited for a core.
    const time = Math.min(timeDeltas[index] ?? 0, 2 * SAMPLE_MICROSECONDS);
    if (area !== "(idle)") spent.set(area, (spent.get(area) ?? 0) + time);
  }
  const all = [...spent.values()].reduce((sum, time) => sum + time, 0);
  const shares = [...spent].map(([area, time]) => ({ area, share: time / all }));
  const large = shares.filter(({ share }) => share >= SHARE_MIN).toSorted((a, b) => b.share - a.share);
  const told = large.reduce((sum, { share }) => sum + share, 0);
  return [...large, { area: "the rest", share: 1 - told }];
}
