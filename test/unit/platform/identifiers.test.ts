import { describe, expect, it } from "vitest";
import { newUuidV7 } from "../../../src/platform/identifiers.ts";

/** The milliseconds a UUID v7 starts with. */
const timeOf = (id: string) => Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);

describe("newUuidV7", () => {
  it("rises within a millisecond, so that runs of one thread list in the order of their acceptance", () => {
    const ids = Array.from({ length: 1_000 }, () => newUuidV7());
    expect([...ids].sort()).toEqual(ids);
  });

  it("is not older than it must be when the clock was set back since the newest run", () => {
    const future = Date.now() + 3_600_000;
    expect(timeOf(newUuidV7(future))).toBe(future);
    expect(newUuidV7(future + 1) > newUuidV7(future)).toBe(true);
    expect(timeOf(newUuidV7(future - 7_200_000))).toBeLessThan(future);
  });
});
