/** The pagination headers that the LangGraph SDK reads. */
export function paginationHeaders(page: { offset: number; limit: number; total: number }): Record<string, string> {
  const next = page.offset + page.limit;
  return {
    "x-pagination-total": String(page.total),
    ...(next < page.total ? { "x-pagination-next": String(next) } : {}),
  };
}
