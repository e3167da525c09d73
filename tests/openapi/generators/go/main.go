// Lists, creates, batches, plans and polls with the client that oapi-codegen made; prints what came of it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"generated-client/generated"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	ctx := context.Background()
	token := generated.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("FLUX_API_WRITE_TOKEN"))
		return nil
	})
	client := must(generated.NewClientWithResponses(os.Getenv("FLUX_API_URL"), token))

	listed := must(client.ClustersListWithResponse(ctx, nil))
	reason := "generated"
	created := must(client.ClustersCreateWithResponse(ctx, &generated.ClustersCreateParams{XReason: &reason}, generated.ClusterNew{
		Id: "gen-01", ClusterName: "gen-01", ClusterDns: "gen-01.example.com", Environment: "dev",
	}))

	clusters := []string{"gen-01"}
	var create, assign, unassign generated.Operation
	document := map[string]any{"oci_tag": "6.0.0"}
	must(0, create.FromDocumentOperation(generated.DocumentOperation{
		Op: "create", Kind: "namespaces", Id: "gen", Document: map[string]any{"id": "gen"},
	}))
	must(0, assign.FromAssignOperation(generated.AssignOperation{
		Op: "assign", Kind: "platform_components", Id: "podinfo", Document: &document, Clusters: &clusters,
	}))
	must(0, unassign.FromUnassignOperation(generated.UnassignOperation{
		Op: "unassign", Kind: "platform_components", Id: "podinfo", Clusters: &clusters,
	}))
	batch := generated.Batch{Operations: []generated.Operation{create, assign}}
	dry := true
	dryRun := must(must(client.BatchCreateWithResponse(ctx, &generated.BatchCreateParams{DryRun: &dry}, batch)).JSON200.AsPlan())
	done := must(must(client.BatchCreateWithResponse(ctx, nil, batch)).JSON200.AsBatchAnswer())
	plan := must(client.PlanCreateWithResponse(ctx, nil, generated.Batch{Operations: []generated.Operation{unassign}}))
	view := must(client.ApiFluxPlatformComponentsWithResponse(ctx, "gen-01.example.com", nil))
	refused := must(client.ClustersGetWithResponse(ctx, "nobody", nil))

	ids, changes, polled := []string{}, []string{}, [][]any{}
	for _, cluster := range *listed.JSON200 {
		ids = append(ids, cluster.Id)
	}
	for _, result := range done.Results {
		changes = append(changes, string(result.Change))
	}
	for _, input := range view.JSON200.Inputs {
		polled = append(polled, []any{input.Id, input.Source.OciTag})
	}
	told := must(json.Marshal(map[string]any{
		"listed":  ids,
		"created": created.JSON201.ClusterDns,
		"dry run": dryRun.Summary.Added,
		"batch":   changes,
		"plan":    plan.JSON200.Summary.Removed,
		"polled":  polled,
		"refused": refused.ApplicationproblemJSON404.Code,
	}))
	fmt.Println(string(told))
}
