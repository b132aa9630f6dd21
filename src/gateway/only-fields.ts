/** Of something in a list the fields that its `select` named; all of them without one. */
export function onlyFields<T extends object>(whole: T, select: readonly string[] | null | undefined): Partial<T> {
  if (select == null) return whole;
  return Object.fromEntries(Object.entries(whole).filter(([field]) => select.includes(field))) as Partial<T>;
}
