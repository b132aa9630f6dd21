/**
 * Where an agent of another process is reached over the Agent Client Protocol, and what it may do unasked. PERSISTED in
 * definitions, run rows and batch rows: fields are only added. Its headers are secrets: they leave the deployment only
 * towards `url`.
 */
export interface AcpEndpoint {
  /** `wss:`, or `ws:` to this machine. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The directory of the session, as the agent's machine knows it. */
  readonly cwd: string;
  /** The answer to every request for permission: nobody is asked. */
  readonly permission: "reject" | "allow";
}
