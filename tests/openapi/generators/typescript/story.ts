// Lists, creates, batches, plans and polls with the types that openapi-typescript made; prints what came of it.
import createClient from "openapi-fetch";
import type { components, paths } from "./generated.js";

const env = (globalThis as unknown as { process: { env: Record<string, string> } }).process.env;
const client = createClient<paths>({
  baseUrl: env.FLUX_API_URL,
  headers: { Authorization: `Bearer ${env.FLUX_API_WRITE_TOKEN}` },
});

const listed = await client.GET("/clusters");
const created = await client.POST("/clusters", {
  params: { header: { "X-Reason": "generated" } },
  body: { id: "gen-01", cluster_name: "gen-01", cluster_dns: "gen-01.example.com", environment: "dev" },
});
const batch: components["schemas"]["Batch"] = {
  operations: [
    { op: "create", kind: "namespaces", id: "gen", document: { id: "gen" } },
    {
      op: "assign",
      kind: "platform_components",
      id: "podinfo",
      document: { oci_tag: "6.0.0" },
      clusters: ["gen-01"],
    },
  ],
};
const dryRun = await client.POST("/batch", { params: { query: { dry_run: true } }, body: batch });
const done = await client.POST("/batch", { body: batch });
const plan = await client.POST("/plan", {
  body: { operations: [{ op: "unassign", kind: "platform_components", id: "podinfo", clusters: ["gen-01"] }] },
});
const view = await client.GET("/api/v2/flux/clusters/{cluster_dns}/platform-components", {
  params: { path: { cluster_dns: "gen-01.example.com" } },
});
const refused = await client.GET("/clusters/{id}", { params: { path: { id: "nobody" } } });

const story = {
  listed: listed.data?.map((cluster) => cluster.id),
  created: created.data && "cluster_dns" in created.data ? created.data.cluster_dns : undefined,
  "dry run": dryRun.data && "summary" in dryRun.data ? dryRun.data.summary.added : undefined,
  batch: done.data?.results.map((result) => result.change),
  plan: plan.data?.summary.removed,
  polled: view.data?.inputs.map((input) => [input.id, input.source.oci_tag]),
  refused: refused.error?.code,
};
console.log(JSON.stringify(story));
