"""What Prometheus is told. Counting must cost a poll next to nothing, so plain numbers are kept and dressed up later."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from flux_resourceset.follower import Follower

MEDIA_TYPE = CONTENT_TYPE_LATEST
BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Families = list[Metric]
Rule = Callable[[list[float]], float]


def _of_one(values: list[float]) -> float:
    return values[0]


# How several workers are one here. Counters and histograms are added up, of ages (gauges of seconds) the highest is told, and of
# every other gauge what stands here; `_of_one`: of the worker that was asked, for it is the same in all of them.
GAUGES: Mapping[str, Rule] = {
    "flux_resourceset_revision": min,
    "flux_resourceset_store_up": min,
    "flux_resourceset_documents": _of_one,
    "flux_resourceset_tombstones": _of_one,
    "flux_resourceset_skipped_references": max,
    "flux_resourceset_prepared_answers": sum,
    "flux_resourceset_streams": sum,
}


def rule(family: Metric) -> Rule:
    if family.type != "gauge":
        return sum
    return max if family.name.endswith("_seconds") else GAUGES.get(family.name, max)


def together(workers: Iterable[Families]) -> Families:
    """What several workers tell, as if it were one; the one that was asked comes first."""
    told: dict[str, tuple[Metric, dict[tuple[str, tuple[tuple[str, str], ...]], list[float]]]] = {}
    for families in workers:
        for family in families:
            _, samples = told.setdefault(family.name, (family, {}))
            for sample in family.samples:
                samples.setdefault((sample.name, tuple(sample.labels.items())), []).append(sample.value)
    made = []
    for family, samples in told.values():
        whole = Metric(family.name, family.documentation, family.type)
        for (name, labels), values in samples.items():
            whole.add_sample(name, dict(labels), rule(family)(values))
        made.append(whole)
    return made


def lasting(families: Families) -> Families:
    """What stays true of a worker that is no more: what it has counted."""
    return [family for family in families if family.type != "gauge"]


class _Told(Collector):
    def __init__(self, families: Families) -> None:
        self._families = families

    def collect(self) -> Families:
        return self._families


class Latency:
    """A histogram of one route."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect.bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Metrics:
    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self.latency: defaultdict[str, Latency] = defaultdict(Latency)
        self.fast: defaultdict[str, Latency] = defaultdict(Latency)  # by route, what the fast path answered with 200 to a GET
        self.streams = 0  # that are open
        self.carried: Families = []  # what a worker that died had counted, if this one is in its place
        self.gather: Callable[[], Awaitable[list[Families]]] = self._alone  # from every worker, this one first

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        self.requests[route, method, status] += 1
        self.latency[route].observe(seconds)

    async def exposition(self) -> bytes:
        return generate_latest(_Told(together(await self.gather())))

    async def _alone(self) -> list[Families]:
        return [self.collect()]

    def collect(self) -> Families:
        return [*self.counted(), *self._state()]

    def counted(self) -> Families:
        return together([[*self._traffic()], self.carried])

    def _traffic(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("flux_resourceset_requests", "Requests answered.", labels=("route", "method", "status"))
        latency = HistogramMetricFamily("flux_resourceset_request_seconds", "Time to answer.", labels=("route",))
        answered = {(route, "GET", 200): sum(observed.counts) for route, observed in self.fast.items()}
        fast, ordinary = sum(answered.values()), 0
        for request, count in list(self.requests.items()):
            ordinary += count if request in answered else 0
            answered[request] = answered.get(request, 0) + count
        for (route, method, status), count in answered.items():
            if count:
                requests.add_metric((route, method, str(status)), count)
        yield requests
        yield CounterMetricFamily("flux_resourceset_polls_fast", "Polls that the fast path served.", value=fast)
        yield CounterMetricFamily("flux_resourceset_polls_ordinary", "Polls that the ordinary route served.", value=ordinary)
        for route in dict.fromkeys([*self.latency, *self.fast]):
            both = [observed for observed in (self.latency.get(route), self.fast.get(route)) if observed]
            total, buckets = 0, []
            for bound, *counts in zip((*map(str, BUCKETS), "+Inf"), *(observed.counts for observed in both), strict=True):
                total += sum(counts)
                buckets.append((bound, total))
            latency.add_metric((route,), buckets, sum(observed.total for observed in both))
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
            value=self._follower.age(),
        )  # fmt: skip
        yield GaugeMetricFamily(
            "flux_resourceset_store_up", "Whether the database can be asked.", value=self._follower.is_reachable()
        )
        yield GaugeMetricFamily(
            "flux_resourceset_store_age_seconds", "Seconds since the database last answered.", value=self._follower.age()
        )
        yield GaugeMetricFamily(
            "flux_resourceset_follow_lag_seconds",
            "Seconds for which something is known to have been written that is not served yet.",
            value=self._follower.lag(),
        )
