"""What an import warns of reaches its answer and its headers, however much it is."""

from __future__ import annotations

from pathlib import Path

import live
from flux_resourceset import imports, outcomes, transfer


def test_an_import_answers_its_warnings_up_to_a_bound(tmp_path: Path) -> None:
    count = imports.SHOWN_WARNINGS + 7
    with live.serving(tmp_path, STORE_BACKEND="memory") as server, server.client() as api:
        export = api.get("/export").json()
        export["tombstones"] = [{"dns": f"c{n}.example.com", "id": f"c{n}", "revision": 1} for n in range(count)]
        export["checksum"] = transfer.checksum(export)
        answer = api.post("/import", json=export)
    body, headers = answer.json(), answer.headers.get_list("x-warning")
    assert (answer.status_code, body["revision"], body["documents"]) == (200, 1, 0)
    assert len(body["warnings"]) == imports.SHOWN_WARNINGS + 1
    assert body["warnings"][-1] == "and 7 more warnings"
    assert headers[:-1] == body["warnings"][: outcomes.SHOWN_WARNINGS]
    assert headers[-1] == f"and {count - outcomes.SHOWN_WARNINGS} more warnings"
