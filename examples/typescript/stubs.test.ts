import assert from "node:assert/strict";
import test from "node:test";
import createClient from "openapi-fetch";
import type { components, paths } from "./mockraft.js";

const admin = process.env.MOCKRAFT_ADMIN ?? "http://127.0.0.1:8080";
const mockraft = createClient<paths>({ baseUrl: admin });
const match: components["schemas"]["Match"] = { api: "BrokerHeartbeat", brokerId: 1 };

test.beforeEach(() => mockraft.POST("/v1/reset"));

test("a heartbeat meets a standby, and the broker sends another", async () => {
  const stub = await mockraft.POST("/v1/stubs", {
    body: { match, trigger: { once: true }, actions: [{ injectError: "NOT_CONTROLLER" }] },
  });
  assert.ok(stub.data);

  const verified = await mockraft.POST("/v1/requests/verify", {
    body: { match, atLeast: 2, withinMs: 20_000 },
  });

  assert.ok(verified.data?.verified, verified.data?.report ?? "");
  const { data: served } = await mockraft.GET("/v1/stubs/{stubId}", {
    params: { path: { stubId: stub.data.id } },
  });
  assert.equal(served?.calls, 1);
});

test("a refusal names the field", async () => {
  const { error } = await mockraft.POST("/v1/stubs", { body: { match: { api: "BrokerHeartbeet" } } });
  assert.equal(error?.errors?.[0]?.pointer, "#/match/api");
});

test("a match does not compile with an unknown field", () => {
  // @ts-expect-error
  const wrong: components["schemas"]["Match"] = { broker: 1 };
  assert.ok(wrong);
});
