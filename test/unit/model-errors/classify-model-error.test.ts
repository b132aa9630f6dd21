import { describe, expect, it } from "vitest";
import {
  classifyModelError,
  isRetriable,
  type ModelErrorFacts,
  type ModelErrorReason,
} from "../../../src/domain/model-errors/classify-model-error.ts";

type Case = readonly [what: string, facts: Partial<ModelErrorFacts>, reason: ModelErrorReason];

const answered = (status: number, message = "no", code?: string) => ({
  reason: "provider" as const,
  status,
  message,
  code,
});
const inStream = (message: string, code?: string) => ({ reason: "stream_error" as const, message, code });

const CASES: readonly Case[] = [
  // The code decides whatever the status is.
  [
    "an account without money, sent as 429",
    answered(429, "You exceeded your current quota", "insufficient_quota"),
    "quota",
  ],
  ["a billing limit, sent as 400", answered(400, "limit", "billing_hard_limit_reached"), "quota"],
  ["a burst limit by its code", answered(429, "slow down", "limit_burst_rate"), "burst_rate"],
  ["a burst limit by its code, in a stream", inStream("slow down", "limit_burst_rate"), "burst_rate"],
  // The status decides; words of a 429 or 5xx that sound like a refusal do not.
  ["a rate limit that mentions a quota", answered(429, "Quota exceeded for requests per minute"), "transient"],
  ["a rate limit that mentions a permission", answered(429, "your permission tier allows 10 requests"), "transient"],
  ["a rate limit that mentions credits and billing", answered(429, "see billing to buy credits"), "transient"],
  ["a 503 that mentions authentication", answered(503, "authentication service unavailable"), "transient"],
  ["a 429 whose words are those of a burst", answered(429, "Request rate increased too quickly"), "burst_rate"],
  ...[408, 409, 425, 429, 500, 502, 503, 504, 529].map((status): Case => [
    `status ${status}`,
    answered(status),
    "transient",
  ]),
  ["status 401", answered(401, "quota of what?"), "auth"],
  ["status 402", answered(402), "quota"],
  ["status 403", answered(403, "forbidden"), "auth"],
  ["a 403 about billing", answered(403, "billing is not enabled for this project"), "quota"],
  ["a 400 about an empty account", answered(400, "Your credit balance is too low"), "quota"],
  ["a 400 about a bad key", answered(400, "API key not valid"), "auth"],
  ["a 400 that asks to try again later", answered(400, "bad request, try again later"), "generic"],
  ["a plain 400", answered(400, "messages: too long"), "generic"],
  ["status 404", answered(404, "no permission to see this model"), "generic"],
  ["status 422", answered(422), "generic"],
  // Without a status words decide, and what passes comes first.
  ["an overloaded provider in a stream", inStream("Overloaded"), "busy"],
  ["the same by its type", inStream("x", "overloaded_error"), "busy"],
  ["a rate limit in a stream that mentions a quota", inStream("rate limit reached: quota per minute"), "busy"],
  ["a busy provider in Chinese", inStream("服务繁忙，请稍后再试"), "busy"],
  ["an empty account in a stream", inStream("insufficient balance"), "quota"],
  ["the same in Chinese", inStream("账户余额不足"), "quota"],
  ["a refusal in a stream", inStream("Access denied"), "auth"],
  ["the same in Chinese", inStream("鉴权失败"), "auth"],
  ["a burst in a stream", inStream("rate increased too quickly"), "burst_rate"],
  ["an error in a stream that says nothing known", inStream("internal problem"), "transient"],
  ["a status inside a stream", { ...inStream("overloaded"), status: 401 }, "auth"],
  // Of these the words are ours.
  ["no connection", { reason: "provider", message: "permission denied: connect EACCES" }, "transient"],
  ["a stream that ended early", { reason: "truncated", message: "quota" }, "transient"],
  ["silence", { reason: "idle", message: "forbidden" }, "transient"],
  ["an empty answer", { reason: "empty", message: "credits" }, "transient"],
];

describe("what a failed model call means", () => {
  it.each(CASES)("%s", (_what, facts, reason) => {
    expect(classifyModelError({ reason: "provider", message: "", ...facts })).toBe(reason);
  });

  it("tries again what may pass, and nothing else", () => {
    const reasons: ModelErrorReason[] = ["quota", "auth", "burst_rate", "transient", "busy", "generic"];
    expect(reasons.filter(isRetriable)).toEqual(["burst_rate", "transient", "busy"]);
  });
});
