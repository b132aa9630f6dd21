/** A place named in `config.configurable` was dropped: a client that forked a thread there got a run from its head. */
import { describe, expect, it } from "vitest";
import { refusePlace, withPlaceInBody } from "../../../src/gateway/run-place.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";

const run = (configurable: Record<string, unknown>, more: object = {}) =>
  createRunBodySchema.parse({ assistant_id: "lead_agent", config: { configurable, tags: ["kept"] }, ...more });

describe("a place in config.configurable", () => {
  it("is the body's checkpoint_id, and leaves the config", () => {
    const placed = withPlaceInBody(run({ checkpoint_id: "c1", checkpoint_ns: "", checkpoint_map: {}, mine: 1 }), "t");
    expect(placed).toMatchObject({
      ok: true,
      value: { checkpoint_id: "c1", config: { configurable: { mine: 1 }, tags: ["kept"] } },
    });
    if (placed.ok) expect(Object.keys(placed.value.config?.configurable ?? {})).toEqual(["mine"]);
  });

  it.each([{ checkpoint_id: "c1" }, { checkpoint: { checkpoint_id: "c1", checkpoint_ns: "" } }])(
    "agrees with %j, and a second one beside it is refused",
    (beside) => {
      expect(withPlaceInBody(run({ checkpoint_id: "c1" }, beside), "t").ok).toBe(true);
      const refused = withPlaceInBody(run({ checkpoint_id: "c2" }, beside), "t");
      expect(refused).toMatchObject({ ok: false, error: { code: "invalid_request" } });
      if (!refused.ok) expect(refused.error.message).toMatch(/^body\.config\.configurable\.checkpoint_id: must be the/);
    },
  );

  it("takes the state's own map, which says the same as the id", () => {
    const state = { thread_id: "t", checkpoint_ns: "", checkpoint_id: "c1", checkpoint_map: { "": "c1" } };
    expect(withPlaceInBody(run(state), "t")).toMatchObject({ ok: true, value: { checkpoint_id: "c1" } });
  });

  it("counts null as not given, as everywhere", () => {
    const nothing = { thread_id: null, checkpoint_id: null, checkpoint_ns: null, checkpoint_map: null };
    const placed = withPlaceInBody(run(nothing), undefined);
    expect(placed.ok && "checkpoint_id" in placed.value).toBe(false);
  });

  it.each([
    ["thread_id", "other", "invalid_request", "must be the thread of the path, or absent"],
    ["thread_id", 7, "invalid_request", "must be the thread of the path, or absent"],
    ["checkpoint_id", 7, "invalid_request", "must be a string"],
    ["checkpoint_ns", "child:1", "unsupported_option", "a run starts from the thread's own checkpoints."],
    ["checkpoint_ns", 7, "unsupported_option", "a run starts from the thread's own checkpoints."],
    ["checkpoint_map", { "child:1": "c1" }, "unsupported_option", "a run starts from the thread's own checkpoints."],
    ["checkpoint_map", "c1", "unsupported_option", "a run starts from the thread's own checkpoints."],
  ])("%s %j is refused as %s, by its name", (key, value, code, why) => {
    const refused = withPlaceInBody(run({ [key]: value }), "t");
    expect(refused).toMatchObject({ ok: false, error: { code } });
    if (!refused.ok) expect(refused.error.message.endsWith(`config.configurable.${key}: ${why}`)).toBe(true);
  });

  it("has no thread to name where the run gets one of its own", () => {
    const refused = withPlaceInBody(run({ thread_id: "t" }), undefined);
    expect(refused.ok ? "" : refused.error.message).toContain("use /threads/{thread_id}/runs");
  });

  it("is no default of an assistant's", () => {
    expect(refusePlace({ checkpoint_id: null, mine: 1 })).toBeUndefined();
    expect(refusePlace(undefined)).toBeUndefined();
    expect(refusePlace({ checkpoint_id: "c1" })?.message).toMatch(
      /^body\.config\.configurable\.checkpoint_id: belongs/,
    );
  });
});
