/** Seeded random numbers: the same seed and label give the same sequence on every machine. Nothing here asks a clock. */
export class Random {
  #state: number;

  /** Streams of different labels do not disturb each other: a draw more in one leaves the others as they were. */
  constructor(seed: number, label: string) {
    let hash = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
    for (const character of label) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193) >>> 0;
    this.#state = hash;
  }

  /** In [0, 1): mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** From 0 to `below` - 1. */
  int(below: number): number {
    return Math.floor(this.next() * below);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[this.int(from.length)];
    if (picked === undefined) throw new Error("nothing to pick from");
    return picked;
  }
}
