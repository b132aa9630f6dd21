/**
 * `npm run dev`: Deputy on one port. `PORT` (8787), state under `STATE_DIR` (.wrangler/state); prints one line
 * `ready http://127.0.0.1:<port>` when it answers. Ctrl-C ends everything it started.
 */
import { startDevServer } from "./dev-server.ts";

const { PORT, STATE_DIR } = process.env;
const port = Number(PORT ?? "8787");
if (!Number.isInteger(port) || port < 1 || port > 65_535) {
  console.error(`PORT must be an integer from 1 to 65535, got ${JSON.stringify(PORT)}`);
  process.exit(1);
}

const server = await startDevServer({
  port,
  ...(STATE_DIR === undefined ? {} : { stateDir: STATE_DIR }),
  onLine: (line) => console.error(line),
}).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});
console.log(`ready ${server.url}`);

let stopping = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (stopping) return;
    stopping = true;
    void server.stop().then(() => process.exit(0));
  });
}
const code = await server.exited;
process.exit(code ?? 1);
