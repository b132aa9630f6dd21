import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { packBody, unpackBody } from "../../../src/platform/durable-storage/packed-body.ts";

describe("packed body", () => {
  it("comes apart as it was put together, at any offset in its buffer", () => {
    const body = fc.record({ header: fc.jsonValue(), segments: fc.array(fc.uint8Array()) });
    fc.assert(
      fc.property(body, fc.nat(16), ({ header, segments }, offset) => {
        const packed = packBody({ header, segments });
        const moved = new Uint8Array(offset + packed.byteLength);
        moved.set(packed, offset);
        const read = unpackBody(moved.subarray(offset));
        expect(JSON.stringify(read.header)).toBe(JSON.stringify(header));
        expect(read.segments.map((segment) => [...segment])).toEqual(segments.map((segment) => [...segment]));
      }),
    );
  });

  it("half of a surrogate pair in a header survives", () => {
    const { header } = unpackBody(packBody({ header: "\ud83d cut", segments: [] }));
    expect(header).toBe("\ud83d cut");
  });

  it("a body that lost its end or its chunks is a fault, not a shorter value", () => {
    const packed = packBody({ header: null, segments: [new Uint8Array(10)] });
    expect(() => unpackBody(packed.subarray(0, -1))).toThrow(/not as long as its header says/);
    expect(() => unpackBody(packed.subarray(0, 3))).toThrow(/has no length/);
  });

  // PERSISTED: bytes written by the first release must stay readable.
  it("reads a body of the first format", () => {
    const stored = new TextEncoder().encode('\0\0\0\u0020{"header":{"v":1},"lengths":[2]}ok');
    const { header, segments } = unpackBody(stored);
    expect(header).toEqual({ v: 1 });
    expect(new TextDecoder().decode(segments[0])).toBe("ok");
  });
});
