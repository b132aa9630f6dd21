/**
 * The processes below this one, read from `/proc`: which ports they listen on, and the CPU time and memory of workerd.
 * Finds nothing outside Linux; the caller does without.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** `st` of a listening socket in `/proc/net/tcp`. */
const LISTENING = "0A";
/** Linux counts CPU time in hundredths of a second, whatever the machine. */
const CPU_TICK_MS = 10;
const KIBIBYTE = 1_024;

/** Ports that processes below this one listen on, each once. */
export function descendantPorts(): number[] {
  try {
    const inodes = new Set(descendants().flatMap(socketInodes));
    const sockets = readFileSync("/proc/net/tcp", "utf8").trim().split("\n").slice(1);
    const ports = sockets
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => state === LISTENING && inodes.has(inode ?? ""))
      .map(([, local]) => Number.parseInt(local?.split(":")[1] ?? "", 16));
    return [...new Set(ports)];
  } catch {
    return [];
  }
}

/** CPU milliseconds that all workerd processes below this one have used, in user and system mode. */
export function workerdCpuMs(): number {
  return cpuMsOf(workerds());
}

/** The same of the processes below this one that were started with all of `words`; 0 where `/proc` is missing. */
export function commandCpuMs(words: readonly string[]): number {
  try {
    return cpuMsOf(startedWith(words));
  } catch {
    return 0;
  }
}

/** Ends those processes at once. */
export function killCommand(words: readonly string[]): void {
  try {
    for (const pid of startedWith(words)) process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself, or there is no `/proc`.
  }
}

function startedWith(words: readonly string[]): number[] {
  return descendants().filter((pid) => {
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    return words.every((word) => commandLine.includes(word));
  });
}

function cpuMsOf(pids: readonly number[]): number {
  const used = pids.map((pid) => {
    const [, , , , , , , , , , , user, system] = statOf(pid);
    return (Number(user) + Number(system)) * CPU_TICK_MS;
  });
  return used.reduce((sum, ms) => sum + ms, 0);
}

/** Resident bytes of the largest workerd process below this one: the one the Worker runs in. */
export function workerdResidentBytes(): number {
  const sizes = workerds().map((pid) => {
    const [, kibibytes = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kibibytes) * KIBIBYTE;
  });
  return Math.max(0, ...sizes);
}

function workerds(): number[] {
  return descendants().filter((pid) => readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "workerd");
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
    return Number(statOf(pid)[1]);
  } catch {
    return undefined;
  }
}

/** The fields of `/proc/<pid>/stat` behind the command, which may hold spaces: state, parent, ... */
function statOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
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
