/** Content types of workspace files, by extension: bytes written by tools carry none. */
const TYPES: Readonly<Record<string, string>> = {
  csv: "text/csv; charset=utf-8",
  css: "text/css; charset=utf-8",
  gif: "image/gif",
  html: "text/html; charset=utf-8",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  jsonl: "application/jsonl",
  md: "text/markdown; charset=utf-8",
  pdf: "application/pdf",
  png: "image/png",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
  webp: "image/webp",
  xml: "application/xml",
  zip: "application/zip",
};

/**
 * Shown in a browser as they are. Everything else downloads: a file written by a model must not run as a page of this
 * origin.
 */
const INLINE = new Set(["csv", "gif", "jpeg", "jpg", "json", "jsonl", "md", "pdf", "png", "txt", "webp"]);

export function fileHeaders(path: string): Record<string, string> {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const extension = name.includes(".") ? name.slice(name.lastIndexOf(".") + 1).toLowerCase() : "";
  const disposition = INLINE.has(extension) ? "inline" : "attachment";
  return {
    "content-type": TYPES[extension] ?? "application/octet-stream",
    "content-disposition": `${disposition}; filename*=UTF-8''${encodeRfc5987(name)}`,
    "x-content-type-options": "nosniff",
  };
}

function encodeRfc5987(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
