/**
 * Options of a run that are not used as they were asked, by name: what its metadata tells its client.
 * Owns the shape and its place in a run's metadata. PERSISTED with the run's row.
 */
export interface AdjustedOption {
  readonly requested: unknown;
  readonly used: unknown;
}

export type AdjustedOptions = Readonly<Record<string, AdjustedOption>>;

/** In a run's metadata, when anything was adjusted. A client's own value of it is dropped. */
export const ADJUSTED_OPTIONS_KEY = "deputy_adjusted_options";
