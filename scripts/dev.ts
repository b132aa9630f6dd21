/**
 * `npm run dev`: Deputy on one port. `PORT` (8787), state under `STATE_DIR` (.wrangler/state); prints one line
 * `ready http://127.0.0.1:<port>` when it answers. Ctrl-C ends everything it started.
 */
import { type DevServer, startDevServer } from "./dev-server.ts";

const { PORT, STATE_DIR } = process.env;
const port = Number(PORT ?? "8787");
if (!Number.isInteger(port) || port < 1 || port > 65_535) {
  console.error(`PORT must be an integer from 1 to 65535, got ${JSON.stringify(PORT)}`);
  process.exit(1);
}

let server: DevServer | undefined;
let stopping = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (stopping) return;
    stopping = true;
    // While starting there is nothing to stop in good order; leaving ends what was started.
    if (server === undefined) process.exit(130);
    void server.stop().then(() => process.exit(0));
  });
}

try {
  server = await startDevServer({
    port,
    ...(STATE_DIR === undefined ? {} : { stateDir: STATE_DIR }),
    onLine: (line) => console.error(line),
  });
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
console.log(`ready ${server.url}`);
const code = await server.exited;
if (!stopping) process.exit(code ?? 1);
