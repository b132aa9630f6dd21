/**
 * The signature that lets a receiver tell Deputy's deliveries from anybody's: HMAC-SHA256 over the time and the body.
 * The time is in it so that a recorded delivery cannot be played again later; a receiver refuses an old one.
 */
import { createHmac } from "node:crypto";

/** `t=<seconds>,v1=<hex>`: the HMAC of `<seconds>.<body>`, both in UTF-8. */
export function signWebhook(secret: string, body: string, now: number): string {
  const seconds = Math.floor(now / 1_000);
  const digest = createHmac("sha256", secret).update(`${seconds}.${body}`, "utf8").digest("hex");
  return `t=${seconds},v1=${digest}`;
}
