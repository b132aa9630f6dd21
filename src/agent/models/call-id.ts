/**
 * Tool-call ids are ours (contracts, "Ids"): providers reuse theirs across turns and runs, and a reused id makes a later
 * call look answered already. Owns minting only; the provider's id is kept aside by the caller.
 */
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** 24 of 62 characters are 142 bits: no collision within any thread's life. */
const CALL_ID_LENGTH = 24;

export const CALL_ID_PATTERN = /^call_[A-Za-z0-9]{24}$/;

/** `random` gives numbers in [0, 1). */
export function mintCallId(random: () => number): string {
  const pick = () => ALPHABET[Math.floor(random() * ALPHABET.length)];
  return `call_${Array.from({ length: CALL_ID_LENGTH }, pick).join("")}`;
}
