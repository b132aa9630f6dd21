/**
 * How the shipped modules are loaded for the simulation: `cloudflare:workers` is given a stand-in, and a mutant is a second
 * copy of all of `src` in which one edit was made while it was read. Nothing is written to disk.
 */
import { registerHooks } from "node:module";
import { MUTANTS } from "./mutants.ts";

const STAND_IN = new URL("cloudflare-workers.ts", import.meta.url).href;
const OURS = [new URL("../../src/", import.meta.url).href, new URL("./", import.meta.url).href];
const QUERY = "?mutant=";

export function installHooks(): void {
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === "cloudflare:workers") return { url: STAND_IN, shortCircuit: true };
      const resolved = next(specifier, context);
      const [, mutant] = (context.parentURL ?? "").split(QUERY);
      const isOurs = OURS.some((folder) => resolved.url.startsWith(folder)) && !resolved.url.includes(QUERY);
      return mutant !== undefined && isOurs ? { ...resolved, url: `${resolved.url}${QUERY}${mutant}` } : resolved;
    },
    load(url, context, next) {
      const loaded = next(url, context);
      const [path, name] = url.split(QUERY);
      const mutant = MUTANTS.find((each) => each.name === name);
      if (mutant === undefined || path !== `${OURS[0]}${mutant.file}`) return loaded;
      const source =
        typeof loaded.source === "string" ? loaded.source : new TextDecoder().decode(loaded.source ?? undefined);
      return { ...loaded, source: mutate(source, mutant) };
    },
  });
}

/** An edit that matches nothing, or two places, would prove nothing. */
function mutate(source: string, { name, from, to }: (typeof MUTANTS)[number]): string {
  const places = source.split(from).length - 1;
  if (places !== 1) throw new Error(`mutant ${name}: its edit matches ${places} places, it must match one`);
  return source.replace(from, () => to);
}
