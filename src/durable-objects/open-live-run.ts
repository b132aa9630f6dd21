/**
 * Makes a run live in this wake: its frames, numbered on from the reservation in its row, and its abort switch.
 * Owns that the run row learns of every further reservation before an id out of it is handed out.
 */
import { LiveFrames } from "../platform/durable-storage/live-frames.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import { VersionSignal } from "../platform/durable-storage/version-signal.ts";
import type { LiveRun } from "./live-runs.ts";
import type { ThreadContext } from "./thread-context.ts";

export function openLiveRun(context: ThreadContext, run: RunRecord): LiveRun {
  const signal = new VersionSignal();
  const frames = new LiveFrames({
    runId: run.runId,
    log: context.frames,
    signal,
    reserved: run.framesReserved,
    isFirstAttempt: run.attempt === 1,
    bytesMax: context.deps.config.runtime.frame_bytes_max,
    saveReservation: (reserved) => {
      const stored = context.runs.find(run.runId);
      if (stored !== undefined) context.runs.save({ ...stored, framesReserved: reserved });
    },
  });
  const live: LiveRun = {
    runId: run.runId,
    frames,
    signal,
    abort: new AbortController(),
    endedTasks: new Set(),
    done: Promise.resolve(),
  };
  context.live.add(live);
  return live;
}
