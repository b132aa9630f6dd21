/**
 * The public contract of a LangGraph checkpointer, whole and in workerd, under the saver's own name: the suite skips
 * cases for the names of savers it knows to fail them.
 */
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import { DurableSaverProxy } from "../support/durable-saver-proxy.ts";

const initializer = {
  checkpointerName: "DurableCheckpointSaver",
  createCheckpointer: () => new DurableSaverProxy(),
};

validate(initializer);
deltaChannelHistoryTests(initializer);
