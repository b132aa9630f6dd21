import { expect, it } from "vitest";
import { HEADER_WAITS_MAX, HeaderGates } from "../../../src/agent/models/header-gate.ts";

function slowProvider() {
  const open: ((response: Response) => void)[] = [];
  const inner: typeof fetch = () => new Promise((resolve) => open.push(resolve));
  return { open, inner };
}

/** Lets every promise that can settle do so. */
const settle = () => new Promise((resolve) => setTimeout(resolve));

it("lets five requests of an object wait for headers at once, the next in order when one has them (P8)", async () => {
  const { open, inner } = slowProvider();
  const gates = new HeaderGates();
  const done: number[] = [];
  const work = [0, 1, 2, 3, 4, 5, 6].map((at) =>
    gates
      .wrap(
        inner,
        "a",
      )("http://x")
      .then(() => done.push(at)),
  );
  await settle();
  expect(open.length).toBe(5);
  for (let at = 0; at < 7; at += 1) {
    open[at]?.(new Response());
    await settle();
    expect(open.length).toBe(Math.min(7, 6 + at));
  }
  await Promise.all(work);
  expect(done).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(gates.size).toBe(0);
});

it("one object does not wait for another's provider", async () => {
  const { open, inner } = slowProvider();
  const gates = new HeaderGates();
  const fill = () => gates.wrap(inner, "a")("http://x");
  const waiting = Array.from({ length: HEADER_WAITS_MAX + 1 }, fill);
  const other = gates.wrap(inner, "b")("http://x");
  await settle();
  expect(open.length).toBe(HEADER_WAITS_MAX + 1);
  for (let at = 0; at < HEADER_WAITS_MAX + 2; at += 1) {
    open[at]?.(new Response());
    await settle();
  }
  await Promise.all([...waiting, other]);
});

it("an abort leaves the queue and takes nobody's place", async () => {
  const { open, inner } = slowProvider();
  const gates = new HeaderGates();
  const controller = new AbortController();
  const send = (signal?: AbortSignal) => gates.wrap(inner, "a")("http://x", signal ? { signal } : {});
  const first = Array.from({ length: HEADER_WAITS_MAX }, () => send());
  const aborted = send(controller.signal);
  const last = send();
  controller.abort(new Error("cancelled"));
  await expect(aborted).rejects.toThrow("cancelled");
  open[0]?.(new Response("first"));
  await settle();
  open.at(-1)?.(new Response("last"));
  expect(await (await last).text()).toBe("last");
  for (const resolve of open) resolve(new Response());
  await Promise.all(first);
  await expect(send(controller.signal)).rejects.toThrow("cancelled");
  expect(gates.size).toBe(0);
});

it("gives its place back when the request fails", async () => {
  const gates = new HeaderGates();
  const failing = gates.wrap(() => Promise.reject(new Error("no connection")), "a");
  for (let at = 0; at <= HEADER_WAITS_MAX; at += 1) await expect(failing("http://x")).rejects.toThrow("no connection");
  expect(gates.size).toBe(0);
});
