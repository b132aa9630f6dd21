/**
 * The provider's own words about a failure (subagent-seam 1.6): bounded in UTF-8 bytes, the mark of a cut included, and
 * never cut inside a character. Whoever writes one leaves out tool inputs, file contents, credentials and raw payloads.
 */

export const DIAGNOSTIC_BYTES_MAX = 4_096;

const MARK = "… [cut]";

export function boundDiagnostic(text: string): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= DIAGNOSTIC_BYTES_MAX) return text;
  let end = DIAGNOSTIC_BYTES_MAX - new TextEncoder().encode(MARK).length;
  while (isInsideCharacter(bytes[end])) end -= 1;
  return new TextDecoder().decode(bytes.subarray(0, end)) + MARK;
}

function isInsideCharacter(byte = 0): boolean {
  return (byte & 0xc0) === 0x80;
}

/** Text of whatever was thrown. Never throws: a thrown value may refuse to be shown. */
export function describeThrown(error: unknown): string {
  try {
    return boundDiagnostic(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
  } catch {
    return "a value that cannot be shown was thrown";
  }
}
