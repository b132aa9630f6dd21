/**
 * Assertions that stay on in production: a broken invariant fails the turn and keeps storage at its last commit.
 */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Throws `InvariantError` naming `what` when `condition` does not hold. */
export function invariant(condition: unknown, what: string): asserts condition {
  if (!condition) throw new InvariantError(what);
}

/** The end of an exhaustive `switch`: a compile error when a case is missing, a fault when data lied. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable value: ${JSON.stringify(value)}`);
}
