/** The run event log and the message feed, read from D1 behind a flush of the object's outbox. */
import { z } from "zod";
import {
  listMessagesQuerySchema,
  listRunEventsQuerySchema,
  messagePageQuerySchema,
  messagePageSchema,
  runEventRowSchema,
  runMessagesSchema,
} from "../../protocol/run-events.ts";
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
    return page === null ? refuse("not_found", NO_RUN) : rows(page);
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

const messagePage = operation({
  method: "get",
  path: "/threads/:thread_id/messages/page",
  id: "getMessagePage",
  tag: "events",
  summary: "The thread's messages for a page that scrolls back: the latest, or the ones before a sequence number.",
  params: threadParams,
  query: { schema: messagePageQuerySchema },
  responses: { 200: { description: "One page, ascending.", schema: messagePageSchema } },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const flushed = await deps.threads.stub(address.owner, address.thread_id).flushEvents(address);
    if (!flushed.ok) return flushed;
    const { rows: data, next } = await deps.events.listMessages(address, query);
    // Read backwards: the cursor is the oldest row shown.
    return json({ data, has_more: next !== null, next_before_seq: next });
  },
});

const runMessages = operation({
  method: "get",
  path: "/threads/:thread_id/runs/:run_id/messages",
  id: "listRunMessages",
  tag: "events",
  summary: "The messages of one run; without a cursor the latest.",
  params: runParams,
  query: { schema: listMessagesQuerySchema },
  responses: { 200: { description: "One page, ascending.", schema: runMessagesSchema } },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const flushed = await deps.threads.stub(address.owner, address.thread_id).flushEvents(address);
    if (!flushed.ok) return flushed;
    const page = await deps.events.listRunMessages(address, params.run_id, query);
    if (page === null) return refuse("not_found", NO_RUN);
    return json({ data: page.rows, has_more: page.next !== null });
  },
});

/** Retention takes a run out of the log with its events; the thread still knows it. */
const NO_RUN = "Run not found, or its events are past their retention";

function rows(page: EventPage): Answer {
  return json(page.rows, { headers: page.next === null ? {} : { "x-pagination-next": String(page.next) } });
}

export const eventOperations = [runEvents, messages, messagePage, runMessages] as const;
