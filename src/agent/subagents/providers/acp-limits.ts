/** Bounds of one connection to an agent of another process (docs/limits.md). */

/** Connecting, the protocol's handshake and the new session together: an agent that starts a process of its own needs seconds. */
export const ACP_START_MS = 30_000;

/** How long a cancelled agent may take to stop by itself. With the next it stays below the executor's grace of 5 s. */
export const ACP_CANCEL_GRACE_MS = 2_000;

/** How long the peer may take to answer the closing handshake. */
export const ACP_CLOSE_GRACE_MS = 1_000;

/** One message of the protocol. A file an agent shows in a diff fits; an object of 128 MB holds several of them. */
export const ACP_FRAME_CHARS_MAX = 4_000_000;

/**
 * Values inside one message. The protocol's library checks each of them: a message of nothing but numbers that do not belong
 * there costs it a kilobyte and more for every one, hundreds of times the message itself.
 */
export const ACP_FRAME_VALUES_MAX = 10_000;

/** Messages that wait to be read. They are read as they come, so that a queue is a flood. */
export const ACP_PENDING_FRAMES_MAX = 1_000;

/** All messages of one run: a long session has a few millions; past it the agent is in a loop. */
export const ACP_RECEIVED_CHARS_MAX = 64_000_000;

/** All answers to what the agent asks: they repeat parts of it, and wait in memory while the agent does not read them. */
export const ACP_REPLIED_CHARS_MAX = 1_000_000;

/** All text of the agent: kept in memory until the run ends. */
export const ACP_TEXT_CHARS_MAX = 1_000_000;

/** Steps that are told; each becomes a frame and a row of the log. */
export const ACP_STEPS_MAX = 1_000;

/** Tool calls that are open at once. */
export const ACP_OPEN_CALLS_MAX = 256;

/** Of an error message of the agent's, in a diagnostic. */
export const ACP_ERROR_CHARS_MAX = 500;

/** Of a tool's name and title, in a step. */
export const ACP_TITLE_CHARS_MAX = 200;
