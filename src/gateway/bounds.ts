/** Every bound of the HTTP edge (P8), with the reason for its number. Listed in docs/limits.md. */

const MIB = 1_048_576;

/** Ordinary JSON bodies: metadata, filters, options. */
export const JSON_BODY_BYTES_MAX = MIB;

/** Run input and state updates: a long conversation with images, well under RPC's 32 MiB. */
export const RUN_BODY_BYTES_MAX = 10 * MIB;

/** Contracts, "Batches": 5,000 items with their prompts. */
export const BATCH_BODY_BYTES_MAX = 16 * MIB;

/** Workspace paths, decoded. */
export const FILE_PATH_CHARS_MAX = 1_024;

/** Client headers that reach `config.configurable`: context, not payload. */
export const FORWARDED_HEADER_BYTES_MAX = 16_384;

/** Items of one page of an export; the reader bounds its bytes as well. */
export const EXPORT_PAGE_ITEMS = 200;

/** A viewer sees progress within a second. */
export const PROGRESS_POLL_MS = 1_000;

/** One poll is one D1 query and an invocation has 1,000; past it the stream closes and the client asks again. */
export const PROGRESS_POLLS_MAX = 900;

/** Runs of one `POST /runs/batch`: each is two requests to an object, of the 1,000 that an invocation has. */
export const RUNS_PER_BATCH_MAX = 100;

/** Threads of one `POST /runs/cancel` without a thread: each is a request to an object. */
export const CANCEL_THREADS_MAX = 500;
