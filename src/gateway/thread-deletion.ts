/**
 * Deleting many of an owner's threads at once, by their metadata. Owns the bound of one request and that a further one goes
 * on where it stopped; each thread is deleted by its own object, which ends its runs first.
 */
import { type Result, ok } from "../domain/shared/result.ts";
import type { Principal } from "../domain/trust/principal.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { searchThreadsBodySchema } from "../protocol/threads.ts";
import { refuse } from "./errors.ts";
import { addressOf } from "./operation.ts";
import type { GatewayDeps } from "./ports.ts";

/** Each is a request to an object, and a Worker may make 1,000 in answering one of its own. */
export const DELETED_THREADS_MAX = 500;

/** As many as workerd keeps open at once. */
const DELETIONS_AT_ONCE_MAX = 6;

/** Deleted threads leave the search: what a page does not take away is skipped by the next one. */
export async function deleteThreadsOf(
  { threads, threadSearch }: Pick<GatewayDeps, "threads" | "threadSearch">,
  principal: Principal,
  metadata: Record<string, unknown>,
): Promise<Result<null, ApiRefusal>> {
  let missing = 0;
  for (let asked = 0; asked < DELETED_THREADS_MAX;) {
    const query = searchThreadsBodySchema.parse({ metadata, limit: DELETIONS_AT_ONCE_MAX, offset: missing });
    const page = await threadSearch.search(principal.owner, query);
    if (page.threads.length === 0) return ok(null);
    const answers = await Promise.all(
      page.threads.map(({ thread_id: id }) => threads.stub(principal.owner, id).deleteThread(addressOf(principal, id))),
    );
    for (const answer of answers) {
      if (answer.ok) continue;
      // A thread that somebody else deleted meanwhile is as gone as it should be.
      if (answer.error.code !== "not_found") return answer;
      missing += 1;
    }
    asked += page.threads.length;
  }
  const left = (await threadSearch.count(principal.owner, { metadata })) - missing;
  if (left <= 0) return ok(null);
  return refuse("overloaded", `${DELETED_THREADS_MAX} threads were deleted and ${left} are left; ask again.`, { left });
}
