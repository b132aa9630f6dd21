/** Who asks: the owner that a key stands for, and the role it has. Made by the gateway alone, from the key. */
export type Role = "user" | "admin";

export interface Principal {
  readonly owner: string;
  readonly role: Role;
}
