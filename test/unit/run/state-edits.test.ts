import { describe, expect, it } from "vitest";
import { StateEdits } from "../../../src/durable-objects/state-edits.ts";

describe("StateEdits", () => {
  it("runs one edit at a time, in the order of asking, so that each sees what the one before wrote", async () => {
    const edits = new StateEdits();
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const told: string[] = [];
    const all = gates.map((gate, place) =>
      edits.run(async () => {
        told.push(`begin ${place}`);
        await gate.promise;
        told.push(`end ${place}`);
        return place;
      }),
    );
    gates[1]!.resolve();
    gates[0]!.resolve();
    expect(await Promise.all(all)).toEqual([0, 1]);
    expect(told).toEqual(["begin 0", "end 0", "begin 1", "end 1"]);
  });

  it("is active until the last edit is done, and an edit that fails holds up no other", async () => {
    const edits = new StateEdits();
    const gate = Promise.withResolvers<string>();
    const failing = edits.run(() => Promise.reject(new Error("refused")));
    const waiting = edits.run(() => gate.promise);
    await expect(failing).rejects.toThrow("refused");
    expect(edits.active).toBe(true);
    gate.resolve("done");
    expect(await waiting).toBe("done");
    await edits.settled();
    expect(edits.active).toBe(false);
  });
});
