/** What a silent stream of server-sent events says, so that its client and the proxies before it do not give up. */

/** Clients give up after about 30 s of silence; the SDK's idle watchdog waits three heartbeats, at most those 30 s. */
export const HEARTBEAT_MS = 15_000;

/** A comment: an event-stream reader passes over it. */
export const HEARTBEAT_COMMENT = ": heartbeat\n\n";
