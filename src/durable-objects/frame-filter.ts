/** Which frames a reader wants: by stream mode, and by the namespace of the graph that a frame is of. */
import type { StreamMode } from "../protocol/runs.ts";

export interface FrameFilterOptions {
  /** Wire modes; every recorded one when empty. */
  readonly modes: readonly string[];
  /** `a:1|b:2`, or nodes alone, `a|b`; `""` is the run's own graph. A graph's subgraphs are not its. All when empty. */
  readonly namespaces: readonly string[];
}

/** What a stream cannot be understood without. */
const ALWAYS_SENT: ReadonlySet<string> = new Set(["metadata", "error", "gap"]);

/** Where a mode's frames are not called as it is. */
const EVENTS: Readonly<Partial<Record<StreamMode, readonly string[]>>> = {
  "messages-tuple": ["messages"],
  messages: ["messages/metadata", "messages/partial", "messages/complete"],
};

export function frameFilter({ modes, namespaces }: FrameFilterOptions): (event: string) => boolean {
  const events = new Set(modes.flatMap((mode) => EVENTS[mode as StreamMode] ?? [mode]));
  const paths = namespaces.map((namespace) => segmentsOf(namespace));
  return (event) => {
    const [name = event, ...namespace] = event.split("|");
    if (ALWAYS_SENT.has(name)) return true;
    if (events.size > 0 && !events.has(name)) return false;
    return paths.length === 0 || paths.some((path) => isAt(namespace, path));
  };
}

function segmentsOf(namespace: string): readonly string[] {
  return namespace === "" ? [] : namespace.split("|");
}

/** A node's name stands for each of its tasks. */
function isAt(namespace: readonly string[], path: readonly string[]): boolean {
  return (
    namespace.length === path.length &&
    path.every((segment, at) => namespace[at] === segment || namespace[at]?.split(":", 1)[0] === segment)
  );
}
