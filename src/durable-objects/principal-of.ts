/** Who asks, as the gateway wrote it into the address: the only place a principal comes from. */
import type { Principal } from "../domain/trust/principal.ts";
import type { ThreadAddress } from "../protocol/thread-rpc.ts";

export function principalOf({ owner, role }: ThreadAddress): Principal {
  return { owner, role };
}
