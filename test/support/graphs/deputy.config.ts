/** What the workers tests deploy: the repository's configuration, and graphs that do everything LangGraph's may do. */
import configuration from "../../../deputy.config.ts";
import { defineConfig } from "../../../src/config.ts";
import { chatting } from "./chatting.ts";
import { commanding } from "./commanding.ts";
import { contextual, counting, dynamic, failing, forwarded, noSaver, ownSaver } from "./configured.ts";
import { fanOut } from "./fan-out.ts";
import { functional } from "./functional.ts";
import { nested } from "./nested.ts";
import { signing } from "./versioned.ts";

export default defineConfig({
  ...configuration,
  graphs: {
    nested,
    fan_out: fanOut,
    commanding,
    dynamic,
    contextual,
    counting,
    own_saver: ownSaver,
    no_saver: noSaver,
    failing,
    forwarded,
    chatting,
    functional,
    versioned: { graph: signing("two"), version: "2", previous: { "1": signing("one") } },
  },
});
