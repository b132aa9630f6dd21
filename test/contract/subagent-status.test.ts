import { expect, test } from "vitest";
import {
  SUBAGENT_STATUS_CONTRACT_VERSION,
  SUBAGENT_STATUSES,
  SUBAGENT_STOP_REASONS,
} from "../../src/domain/delegation/status-contract.ts";
import fixture from "./fixtures/subagent-status.json" with { type: "json" };

/** The fixture is shared with readers in other languages: it changes there first, with a new version. */
test("R101 statuses and stop reasons are the cross-language contract's, value for value", () => {
  expect({
    version: SUBAGENT_STATUS_CONTRACT_VERSION,
    valid_status_values: [...SUBAGENT_STATUSES],
    valid_stop_reason_values: [...SUBAGENT_STOP_REASONS],
  }).toEqual(fixture);
  expect(fixture.version).toBe(2);
});
