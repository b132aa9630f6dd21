/** The pagination headers that the LangGraph SDK reads. */
export function paginationHeaders(page: { offset: number; limit: number; total: number }): Record<string, string> {
  const next = page.offset + page.limit;
  return {
    "x-pagination-total": String(page.total),
    ...(next < page.total ? { "x-pagination-next": String(next) } : {}),
  };
}

/** The page of a list that is there whole. */
export function pageOf<T>(all: readonly T[], { offset, limit }: { readonly offset: number; readonly limit: number }) {
  return {
    page: all.slice(offset, offset + limit),
    headers: paginationHeaders({ offset, limit, total: all.length }),
  };
}
