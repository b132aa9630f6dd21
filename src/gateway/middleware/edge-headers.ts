/**
 * The headers every answer carries: the request id and CORS. Any origin may call because nothing is authenticated by
 * cookies: a page needs the key in its own hands.
 */
const EXPOSED_HEADERS = "content-location, location, x-pagination-total, x-pagination-next, x-request-id, retry-after";

/** A client's own id is kept when it is safe to log. */
const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,128}$/;

/** How long a browser may remember a preflight: its own usual maximum. */
const PREFLIGHT_SECONDS = 7_200;

export function requestIdOf(headers: Headers, newId: () => string): string {
  const given = headers.get("x-request-id");
  return given !== null && REQUEST_ID_PATTERN.test(given) ? given : newId();
}

/** The same response with the edge's headers; its body is handed on, not read. */
export function withEdgeHeaders(response: Response, requestId: string): Response {
  const headers = new Headers(response.headers);
  headers.set("x-request-id", requestId);
  headers.set("access-control-allow-origin", "*");
  headers.set("access-control-expose-headers", EXPOSED_HEADERS);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

export function preflightResponse(request: Request, requestId: string): Response {
  const asked = request.headers.get("access-control-request-headers") ?? "authorization, content-type, x-api-key";
  const headers = {
    "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS",
    "access-control-allow-headers": asked,
    "access-control-max-age": String(PREFLIGHT_SECONDS),
    vary: "access-control-request-headers",
  };
  return withEdgeHeaders(new Response(null, { status: 204, headers }), requestId);
}
