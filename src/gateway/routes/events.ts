/** The run event log and the message feed, read from D1 behind a flush of the object's outbox. */
import { z } from "zod";
import { listMessagesQuerySchema, listRunEventsQuerySchema, runEventRowSchema } from "../../protocol/run-events.ts";
import { json } from "../answers.ts";
import { refuse } from "../errors.ts";
import { addressOf, type Answer, operation } from "../operation.ts";
import type { EventPage } from "../ports.ts";
import { runParams, threadParams } from "../shapes.ts";

const ROWS = {
  description: "Rows, ascending. `X-Pagination-Next` is the cursor of the next page; without it this was the last.",
  schema: z.array(runEventRowSchema),
} as const;

const runEvents = operation({
  method: "get",
  path: "/threads/:thread_id/runs/:run_id/events",
  id: "listRunEvents",
  tag: "events",
  summary: "What a run did. Filters apply before the limit, so a delegation's rows are all reachable.",
  params: runParams,
  query: { schema: listRunEventsQuerySchema },
  responses: { 200: ROWS },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const flushed = await deps.threads.stub(address.owner, address.thread_id).flushEvents(address);
    if (!flushed.ok) return flushed;
    const page = await deps.events.listRunEvents(address, params.run_id, query);
    return page === null ? refuse("not_found", "Run not found") : rows(page);
  },
});

const messages = operation({
  method: "get",
  path: "/threads/:thread_id/messages",
  id: "listMessages",
  tag: "events",
  summary: "The thread's messages from the event log; without a cursor the latest.",
  params: threadParams,
  query: { schema: listMessagesQuerySchema },
  responses: { 200: ROWS },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const flushed = await deps.threads.stub(address.owner, address.thread_id).flushEvents(address);
    return flushed.ok ? rows(await deps.events.listMessages(address, query)) : flushed;
  },
});

function rows(page: EventPage): Answer {
  return json(page.rows, { headers: page.next === null ? {} : { "x-pagination-next": String(page.next) } });
}

export const eventOperations = [runEvents, messages] as const;
