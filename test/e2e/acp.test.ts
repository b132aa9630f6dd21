import { afterAll, beforeAll, expect, it } from "vitest";
import { AcpAgentProcess } from "../support/acp-agent-process.ts";
import { DeputyServer, eventually } from "../support/deputy-server.ts";

const SCRIPT = "```script\ndelegate remote :: look :: what is there\nsay {{result:1}}\n```";
const SECRET = "Bearer marker-secret";

let agent: AcpAgentProcess;
let deputy: DeputyServer;

beforeAll(async () => {
  agent = await AcpAgentProcess.start();
  const plan = encodeURIComponent(JSON.stringify([{ says: "begun" }, { holds: "crash" }, { says: "late" }]));
  const acp = { url: agent.url(`plan=${plan}`), headers: { authorization: SECRET } };
  const remote = { description: "works elsewhere", provider: "acp", acp };
  const overrides = { runtime: { keep_alive_seconds: 1 }, subagents: { custom_agents: { remote } } };
  deputy = new DeputyServer({ env: { DEPUTY_OVERRIDES: JSON.stringify(overrides) } });
  await deputy.start();
});
afterAll(async () => {
  await deputy.close();
  await agent.stop();
});

interface EventRow {
  readonly event_type: string;
  readonly content: Record<string, unknown>;
}

it("R158 P1 SIGKILL while an agent over acp works: the delegation is failed and says why, and the agent was asked once", async () => {
  const { thread_id: threadId } = await deputy.json<{ thread_id: string }>("POST", "/threads", {});
  const { run_id: runId } = await deputy.json<{ run_id: string }>("POST", `/threads/${threadId}/runs`, {
    assistant_id: "lead_agent",
    input: { messages: [{ type: "human", content: SCRIPT }] },
  });
  await agent.reached("crash");
  await deputy.kill();
  await agent.open("crash");

  // Nothing is asked of the thread: it wakes by its own alarm.
  await deputy.start();
  await eventually(
    () => deputy.query<{ status: string }>(`SELECT status FROM runs WHERE run_id = '${runId}'`),
    ([run]) => run?.status === "success",
    60_000,
  );
  const state = await deputy.json<{ values: { messages: { content: string; type: string }[] } }>(
    "GET",
    `/threads/${threadId}/state`,
  );
  const last = state.values.messages.at(-1)!;
  expect(last.content).toMatch(/connection to the agent was lost.*not asked a second time/);
  const events = await deputy.json<EventRow[]>("GET", `/threads/${threadId}/runs/${runId}/events`);
  const ends = events.filter(({ event_type }) => event_type === "subagent.end");
  expect(ends.map(({ content }) => content["status"])).toEqual(["failed"]);
  const log = await agent.log();
  expect(log.filter(({ event }) => event === "prompt")).toHaveLength(1);
  expect(log.filter(({ event }) => event === "connect").map(({ details }) => details)).toMatchObject([
    { authorization: SECRET },
  ]);
  expect(JSON.stringify([events, state, deputy.lines])).not.toContain("marker-secret");
});
