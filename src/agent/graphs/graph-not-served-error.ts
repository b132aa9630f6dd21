/** A run's graph, or the version of it that the run was accepted with, that configuration serves no more. */
export class GraphNotServedError extends Error {
  override readonly name = "GraphNotServedError";

  constructor(graphId: string, version: string | undefined) {
    const what = version === undefined ? `graph '${graphId}'` : `version '${version}' of graph '${graphId}'`;
    super(`${what} is served no more; the run was accepted with it and is driven by no other`);
  }
}
