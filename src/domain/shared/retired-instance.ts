/**
 * Thrown by an object that finds it was replaced: whatever it was doing is another instance's to do. Owns only the name by
 * which hooks know that it is no failure of a model or a tool, and that nothing may be stored for it.
 */
export class RetiredInstanceError extends Error {
  override readonly name = "RetiredInstanceError";

  constructor(epoch: number, newest: number) {
    super(`this instance has epoch ${epoch} and was replaced by one of epoch ${newest}`);
  }
}
