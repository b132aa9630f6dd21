/**
 * A client's `command` before it is accepted: answers are matched to the interrupts that wait, nodes and channels to the
 * graph, messages become objects with ids. Owns the checks and the stored form, in which an answer names its interrupt:
 * whatever the graph asks later, an answer is given to what it was meant for.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { err, ok, type Result } from "../domain/shared/result.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { RunCommandBody } from "../protocol/run-start.ts";
import { prepareLeadInput } from "./run-input.ts";
import type { PendingInterrupts } from "./run-start-interrupts.ts";

/** What a command is checked against. */
export interface CommandPlace {
  readonly graphId: string;
  /** Absent when the graph cannot be built: then the run fails with that. */
  readonly graph?: { readonly nodes: readonly string[]; readonly channels: readonly string[] } | undefined;
  /** Read when there is an answer to match; `undefined` for a run that waits its turn. */
  readonly pending?: PendingInterrupts | undefined;
  readonly stateMessages: () => Promise<readonly BaseMessage[]>;
  readonly newId: () => string;
}

export interface PreparedCommand {
  readonly command: RunCommandBody;
  readonly messages: readonly BaseMessage[];
}

type Refused<T> = Result<T, ApiRefusal>;

/** LangGraph's ids of interrupts: 128 bits in hexadecimal. */
const INTERRUPT_ID = /^[0-9a-f]{32}$/;

/** The one node of the lead's that a client may go to: the other is sent calls, which are the model's to make. */
const LEAD_ENTRY = "model";

export async function prepareCommand(given: RunCommandBody, place: CommandPlace): Promise<Refused<PreparedCommand>> {
  const { resume, update, goto } = given;
  if (isAbsent(resume) && isAbsent(update) && isAbsent(goto)) {
    return invalid("command: needs at least one of resume, update, goto, and resume cannot be null", ["command"]);
  }
  const answers = prepareAnswers(resume, place);
  if (!answers.ok) return answers;
  const updated = await prepareUpdate(update, place);
  if (!updated.ok) return updated;
  const refusal = refuseGoto(goto, place);
  if (refusal !== undefined) return err(refusal);
  const command: RunCommandBody = {
    ...(answers.value === undefined ? {} : { resume: answers.value }),
    ...(updated.value === undefined ? {} : { update: updated.value.values }),
    ...(isAbsent(goto) ? {} : { goto }),
  };
  return ok({ command, messages: updated.value?.messages ?? [] });
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

/** Answers by interrupt; `undefined` for a command that answers nothing. */
function prepareAnswers(resume: unknown, { pending }: CommandPlace): Refused<Record<string, unknown> | undefined> {
  if (isAbsent(resume)) return ok(undefined);
  const path = ["command", "resume"];
  if (pending === undefined) {
    if (isAnswerMap(resume)) return ok(resume);
    return invalid(
      "command.resume: a run that waits its turn names what it answers: { <interrupt id>: <value> }",
      path,
    );
  }
  const { ids, withoutId } = pending;
  const details = { pending_ids: ids };
  if (pending.isStale) {
    return invalid("command.resume: the graph was stopped between two questions; continue it with input null", path);
  }
  if (isAnswerMap(resume)) {
    const unknown = Object.keys(resume).filter((id) => !ids.includes(id));
    if (unknown.length === 0) return ok(resume);
    const asked = ids.length === 0 ? "nothing waits for an answer" : `waiting: ${ids.join(", ")}`;
    const message = `command.resume: no interrupt ${unknown.join(", ")} waits for an answer; ${asked}`;
    return invalid(message, path, { ...details, unknown_ids: unknown });
  }
  const [only, ...more] = ids;
  if (only === undefined) {
    // Such a question takes no answer: its node runs again.
    if (withoutId > 0) return ok(undefined);
    return invalid("command.resume: nothing waits for an answer; input null continues the run", path, details);
  }
  if (more.length === 0) return ok({ [only]: resume });
  const message = `command.resume: ${ids.length} interrupts wait; name them: { <interrupt id>: <value> } with ${ids.join(", ")}`;
  return invalid(message, path, details);
}

function isAnswerMap(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const keys = Object.keys(value);
  return keys.length > 0 && keys.every((key) => INTERRUPT_ID.test(key));
}

interface PreparedUpdate {
  readonly values: Record<string, unknown>;
  readonly messages: readonly BaseMessage[];
}

async function prepareUpdate(
  update: RunCommandBody["update"],
  place: CommandPlace,
): Promise<Refused<PreparedUpdate | undefined>> {
  if (isAbsent(update)) return ok(undefined);
  const path = ["command", "update"] as const;
  const pairs = Array.isArray(update) ? update : Object.entries(update);
  const twice = pairs.find(([channel], at) => pairs.findIndex(([other]) => other === channel) < at);
  if (twice !== undefined) return invalid(`command.update: writes channel '${twice[0]}' twice`, [...path]);
  const values: Record<string, unknown> = Object.fromEntries(pairs);
  if (place.graphId !== LEAD_GRAPH_ID) {
    const channels = place.graph?.channels;
    const unknown = Object.keys(values).find((channel) => channels?.includes(channel) === false);
    if (unknown === undefined) return ok({ values, messages: [] });
    const message = `command.update: the graph has no channel '${unknown}'; it has: ${channels?.join(", ")}`;
    return invalid(message, [...path, unknown]);
  }
  const prepared = prepareLeadInput([], values, place.newId, path);
  // Only a removal depends on the state.
  return prepared.ok ? prepared : prepareLeadInput(await place.stateMessages(), values, place.newId, path);
}

function refuseGoto(goto: RunCommandBody["goto"], { graphId, graph }: CommandPlace): ApiRefusal | undefined {
  if (isAbsent(goto)) return undefined;
  const targets = Array.isArray(goto) ? goto : [goto];
  const details = { path: ["command", "goto"] };
  if (graphId === LEAD_GRAPH_ID) {
    if (targets.every((to) => to === LEAD_ENTRY)) return undefined;
    const message = `command.goto: the lead agent takes '${LEAD_ENTRY}' only, by its name`;
    return { code: "invalid_request", message, details };
  }
  const names = targets.map((to) => (typeof to === "string" ? to : to.node));
  const unknown = names.find((name) => graph?.nodes.includes(name) === false);
  if (unknown === undefined) return undefined;
  const message = `command.goto: the graph has no node '${unknown}'; its nodes: ${graph?.nodes.join(", ")}`;
  return { code: "invalid_request", message, details };
}

function invalid(message: string, path: readonly string[], details: Record<string, unknown> = {}): Refused<never> {
  return err({ code: "invalid_request", message, details: { path, ...details } });
}
