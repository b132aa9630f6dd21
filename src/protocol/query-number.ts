/** Whole numbers in a query, which is text: read as they are meant, or refused. */
import { z } from "zod";

/** As people and clients write whole numbers: no sign but a minus, no other base, no exponent, nothing empty. */
const WHOLE_NUMBER = /^-?\d{1,16}$/;

/** A name given twice comes as a list: which of the two was meant, nobody can tell. */
export function wholeNumber({ min, max }: { readonly min: number; readonly max: number }) {
  const bounds = z.int({ error: "must be a whole number, given once" }).min(min).max(max);
  return z.preprocess(
    (given) => (typeof given === "string" && WHOLE_NUMBER.test(given) ? Number(given) : given),
    bounds,
  );
}
