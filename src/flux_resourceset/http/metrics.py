"""What Prometheus is told. Counting must cost a poll next to nothing, so plain numbers are kept and dressed up later."""

from __future__ import annotations

import bisect
import time
from collections import defaultdict
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from flux_resourceset.follower import Follower

MEDIA_TYPE = CONTENT_TYPE_LATEST
BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Latency:
    """A histogram of one route."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect.bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Metrics(Collector):
    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        self.requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self.latency: defaultdict[str, Latency] = defaultdict(Latency)
        self.streams = 0  # that are open

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        self.requests[route, method, status] += 1
        self.latency[route].observe(seconds)

    def exposition(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        yield from self._traffic()
        yield from self._state()

    def _traffic(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("flux_resourceset_requests", "Requests answered.", labels=("route", "method", "status"))
        for (route, method, status), count in list(self.requests.items()):
            requests.add_metric((route, method, str(status)), count)
        yield requests
        latency = HistogramMetricFamily("flux_resourceset_request_seconds", "Time to answer.", labels=("route",))
        for route, observed in list(self.latency.items()):
            total, buckets = 0, []
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), observed.counts, strict=True):
                total += count
                buckets.append((bound, total))
            latency.add_metric((route,), buckets, observed.total)
        yield latency

    def _state(self) -> Iterator[Metric]:
        fleet = self._follower.fleet
        yield GaugeMetricFamily("flux_resourceset_revision", "Revision of the fleet that is served.", value=fleet.revision)
        documents = GaugeMetricFamily("flux_resourceset_documents", "Documents.", labels=("kind",))
        for kind, of_kind in fleet.documents.items():
            documents.add_metric((kind,), len(of_kind))
        yield documents
        prepared = len(fleet.answers.keys() | fleet.packed.keys())
        yield GaugeMetricFamily("flux_resourceset_prepared_answers", "Answers that are ready to be sent.", value=prepared)
        yield GaugeMetricFamily(
            "flux_resourceset_skipped_references", "References without a definition, left out of answers.",
            value=len(fleet.dangling()),
        )  # fmt: skip
        yield GaugeMetricFamily("flux_resourceset_streams", "Open streams of the change log.", value=self.streams)
        yield GaugeMetricFamily(
            "flux_resourceset_tombstones", "DNS names of decommissioned clusters.", value=len(fleet.tombstones)
        )
        yield GaugeMetricFamily(
            "flux_resourceset_store_seen_seconds", "Seconds since the store was last found readable.",
            value=time.monotonic() - self._follower.seen,
        )  # fmt: skip
