/**
 * What passes through the gateway while one thread is copied into another: pages of stored rows, as they are. Between
 * objects of one deployment only; a page of another schema is refused by the object that receives it.
 */
import type { Thread } from "./threads.ts";

/** A column of a stored row. */
export type CopiedValue = string | number | null | ArrayBuffer;

/** Behind which row of which table the next page begins. */
export interface CopyCursor {
  readonly table: number;
  /** Of the last row's key; empty before the table's first row. */
  readonly after: readonly (string | number)[];
}

/** Rows of one table, by the table's place in the list of copied ones. */
export interface CopiedRows {
  readonly table: number;
  readonly rows: readonly (readonly CopiedValue[])[];
}

export interface CopyQuery {
  /** Absent for the first page. */
  readonly cursor?: CopyCursor;
  /** Of the first page: the source is still as it was then, or the copy begins anew. */
  readonly stamp?: string;
}

export interface CopyPage {
  readonly kind: "page";
  readonly v: 1;
  readonly stamp: string;
  /** How many steps the source's schema has. */
  readonly schema: number;
  readonly tables: readonly CopiedRows[];
  /** Absent on the last page. */
  readonly next?: CopyCursor;
  /** On the last page: what the new thread is made with. */
  readonly metadata?: Record<string, unknown>;
}

/** The source changed since the copy began. */
export interface CopyChanged {
  readonly kind: "changed";
}

/** One page as the new thread's object gets it, in order; the first one begins the copy anew. */
export interface ReceivedCopyPage {
  readonly copy_id: string;
  readonly index: number;
  readonly page: CopyPage;
}

/** `changed` when the object does not know what came before; the thread once the last page is stored. */
export type CopyReceipt = CopyChanged | { readonly kind: "stored"; readonly thread?: Thread };
