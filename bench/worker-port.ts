/**
 * Finds the port on which the Worker itself listens under `wrangler dev`, which prints only its proxy's. `undefined`
 * where `/proc` is missing: the caller does without.
 */
import { descendantPorts } from "./process-tree.ts";

/** A port that takes the connection and never answers is not the Worker's. */
const PROBE_TIMEOUT_MS = 2_000;

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
