/**
 * The floor under a batch: a consumer that is handed each item whole and does nothing but one D1 write for it. No lease,
 * no claim, no grant, nothing survives a crash: what Deputy takes longer than this is the price of its promises.
 */
const INSERT_ITEMS = `
  INSERT INTO batch_items (batch_id, ordinal, status, attempts, deferrals, item_key, prompt)
  SELECT ?1, value, 'pending', 0, 0, 'k' || value, 'Count ' || value FROM json_each(?2)`;

const FINISH_ITEM = `
  UPDATE batch_items SET status = 'completed', attempts = 1, result = 'done' WHERE batch_id = ?1 AND ordinal = ?2`;

/** Seconds for all items, `atOnce` side by side. */
export async function runFloor(db: D1Database, options: { items: number; atOnce: number }): Promise<number> {
  const { items, atOnce } = options;
  const batchId = crypto.randomUUID();
  const ordinals = Array.from({ length: items }, (_, ordinal) => ordinal);
  await db.prepare(INSERT_ITEMS).bind(batchId, JSON.stringify(ordinals)).run();
  const from = performance.now();
  for (let first = 0; first < items; first += atOnce) {
    const group = ordinals.slice(first, first + atOnce);
    await Promise.all(group.map((ordinal) => db.prepare(FINISH_ITEM).bind(batchId, ordinal).run()));
  }
  return (performance.now() - from) / 1_000;
}
