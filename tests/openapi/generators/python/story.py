"""Lists, creates, batches, plans and polls with the client that openapi-python-client made; prints what came of it."""

import json
import os

from generated import AuthenticatedClient  # type: ignore[import-not-found]  # made by the test
from generated.api.clusters import clusters_create, clusters_get, clusters_list  # type: ignore[import-not-found]
from generated.api.flux import api_flux_platform_components  # type: ignore[import-not-found]
from generated.api.much_at_once import batch_create, plan_create  # type: ignore[import-not-found]
from generated.models import (  # type: ignore[import-not-found]
    AssignOperation,
    AssignOperationDocument,
    AssignOperationKind,
    AssignOperationOp,
    Batch,
    ClusterNew,
    ClusterNewEnvironment,
    DocumentOperation,
    DocumentOperationDocument,
    DocumentOperationKind,
    DocumentOperationOp,
    UnassignOperation,
    UnassignOperationKind,
    UnassignOperationOp,
)

client = AuthenticatedClient(base_url=os.environ["FLUX_API_URL"], token=os.environ["FLUX_API_WRITE_TOKEN"])

listed = clusters_list.sync(client=client)
new = ClusterNew(id="gen-01", cluster_name="gen-01", cluster_dns="gen-01.example.com", environment=ClusterNewEnvironment.DEV)
created = clusters_create.sync(client=client, body=new, x_reason="generated")
batch = Batch(
    operations=[
        DocumentOperation(
            op=DocumentOperationOp.CREATE,
            kind=DocumentOperationKind.NAMESPACES,
            id="gen",
            document=DocumentOperationDocument.from_dict({"id": "gen"}),
        ),
        AssignOperation(
            op=AssignOperationOp.ASSIGN,
            kind=AssignOperationKind.PLATFORM_COMPONENTS,
            id="podinfo",
            document=AssignOperationDocument.from_dict({"oci_tag": "6.0.0"}),
            clusters=["gen-01"],
        ),
    ]
)
dry_run = batch_create.sync(client=client, body=batch, dry_run=True)
done = batch_create.sync(client=client, body=batch)
removal = UnassignOperation(
    op=UnassignOperationOp.UNASSIGN, kind=UnassignOperationKind.PLATFORM_COMPONENTS, id="podinfo", clusters=["gen-01"]
)
plan = plan_create.sync(client=client, body=Batch(operations=[removal]))
view = api_flux_platform_components.sync("gen-01.example.com", client=client)
refused = clusters_get.sync("nobody", client=client)

story = {
    "listed": [cluster.id for cluster in listed],
    "created": created.cluster_dns,
    "dry run": dry_run.summary.added,
    "batch": [str(result.change) for result in done.results],
    "plan": plan.summary.removed,
    "polled": [[input.id, input.source.oci_tag] for input in view.inputs],
    "refused": str(refused.code),
}
print(json.dumps(story))
