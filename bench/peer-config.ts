import { defineConfig } from "../src/config.ts";
import { chain, noop, tokens } from "./peer-graphs.ts";

/** In place of `deputy.config.ts` (see `peers.wrangler.toml`): the bench's graphs beside the lead agent. */
// oxlint-disable-next-line import/no-default-export -- as the file it stands for
export default defineConfig({ graphs: { noop, tokens, chain } });
