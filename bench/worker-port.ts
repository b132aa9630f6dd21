/**
 * Finds the port on which the Worker itself listens under `wrangler dev`, which prints only its proxy's. Reads `/proc`,
 * so it finds nothing outside Linux; the caller does without.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** A port that takes the connection and never answers is not the Worker's. */
const PROBE_TIMEOUT_MS = 2_000;
/** `st` of a listening socket in `/proc/net/tcp`. */
const LISTENING = "0A";

/** `undefined` when there is none besides `proxyPort`. */
export async function workerPort(proxyPort: number): Promise<number | undefined> {
  for (const port of descendantPorts()) {
    if (port !== proxyPort && (await answers(port))) return port;
  }
  return undefined;
}

async function answers(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/ok`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    return response.ok && (await response.text()) === '{"ok":true}';
  } catch {
    return false;
  }
}

/** Ports that processes below this one listen on. */
function descendantPorts(): number[] {
  try {
    const inodes = new Set(descendants().flatMap(socketInodes));
    const sockets = readFileSync("/proc/net/tcp", "utf8").trim().split("\n").slice(1);
    return sockets
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => state === LISTENING && inodes.has(inode ?? ""))
      .map(([, local]) => Number.parseInt(local?.split(":")[1] ?? "", 16));
  } catch {
    return [];
  }
}

function descendants(): number[] {
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  const parents = new Map(pids.map((pid) => [pid, parentOf(pid)]));
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent !== undefined && (parent === process.pid || isBelow(parent));
  };
  return pids.filter(isBelow);
}

/** A process may end while it is looked at. */
function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined;
  }
}

function socketInodes(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? [];
      return inode === undefined ? [] : [inode];
    });
  } catch {
    return [];
  }
}
