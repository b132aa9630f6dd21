/**
 * Expected refusals as values. A function that may be refused returns `Result<T, E>`; `E` is a union tagged by `reason`
 * (domain) or `code` (HTTP edge), so a caller handles it exhaustively. Thrown errors stay reserved for faults.
 */
export type Result<T, E> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E };

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function err<E>(error: E): { readonly ok: false; readonly error: E } {
  return { ok: false, error };
}
