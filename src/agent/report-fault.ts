/** Where a process without a composition root tells a fault of whoever plugged something in: it must not vanish. */
export function reportFault(what: string, error: unknown): void {
  // oxlint-disable-next-line no-console -- such a process has no other log
  console.error(what, error);
}
