/**
 * Gates that a test closes in front of a node: the node waits there, so that its object can be killed in the middle of it.
 * They are module state, because the Worker and its tests share an isolate; every test names its own gates.
 */
const closed = new Set<string>();
const passed = new Map<string, number>();

export function closeGate(name: string): void {
  closed.add(name);
}

export function openGate(name: string): void {
  closed.delete(name);
}

/** How often nodes came to the gate, let through or not. */
export function visits(name: string): number {
  return passed.get(name) ?? 0;
}

export async function passGate(name: string): Promise<void> {
  passed.set(name, visits(name) + 1);
  while (closed.has(name)) await new Promise((next) => void setTimeout(next, 5));
}
