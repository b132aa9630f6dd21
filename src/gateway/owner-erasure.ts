/**
 * Everything of one owner is to be gone. Owns the bound of one request and that a further one goes on where it stopped:
 * what was erased is gone, so there is nothing to remember. Each thread is deleted by its own object.
 */
import { type Result, ok } from "../domain/shared/result.ts";
import type { Principal } from "../domain/trust/principal.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import type { OwnerErasure } from "../protocol/owners.ts";
import { addressOf } from "./operation.ts";
import type { GatewayDeps } from "./ports.ts";

/** Each is a request to an object and some of D1's, and a Worker may make 1,000 in answering one of its own. */
export const ERASED_THREADS_MAX = 200;

/** As many as workerd keeps open at once. */
const ERASURES_AT_ONCE_MAX = 6;

type ErasurePorts = Pick<GatewayDeps, "threads" | "owners" | "now">;

export async function eraseOwner(
  ports: ErasurePorts,
  principal: Principal,
  threadsMax: number = ERASED_THREADS_MAX,
): Promise<Result<OwnerErasure, ApiRefusal>> {
  const { owner } = principal;
  const assistants = await ports.owners.eraseAssistants(owner);
  let threads = 0;
  for (;;) {
    const listed = await ports.owners.threads(owner, "", Math.min(ERASURES_AT_ONCE_MAX, threadsMax - threads));
    const page = listed.length > 0 ? listed : await ports.owners.strays(owner);
    if (page.length === 0) break;
    const answers = await Promise.all(page.map((threadId) => eraseThread(ports, principal, threadId)));
    const refused = answers.find((answer) => !answer.ok);
    if (refused !== undefined && !refused.ok) return refused;
    threads += page.length;
    if (threads < threadsMax) continue;
    const left = await ports.owners.countThreads(owner);
    return ok({ done: false, erased: { threads, assistants }, left: { threads: left } });
  }
  await ports.owners.closeFences(owner, ports.now());
  return ok({ done: true, erased: { threads, assistants }, left: { threads: 0 } });
}

async function eraseThread(
  { threads, owners }: ErasurePorts,
  principal: Principal,
  threadId: string,
): Promise<Result<null, ApiRefusal>> {
  const { owner } = principal;
  const answer = await threads.stub(owner, threadId).deleteThread(addressOf(principal, threadId));
  if (answer.ok || answer.error.code !== "not_found") return answer;
  await owners.eraseThread(owner, threadId);
  return ok(null);
}
