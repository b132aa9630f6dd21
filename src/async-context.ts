/**
 * Installs AsyncLocalStorage for LangGraph. Wrangler resolves LangGraph's browser export, which installs none; without
 * it `interrupt()` and config lookup fail inside a node. Must be the first import of `worker.ts`.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";

AsyncLocalStorageProviderSingleton.initializeGlobalInstance(new AsyncLocalStorage());
