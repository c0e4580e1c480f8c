"""Counters of the service in the Prometheus text format."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

#: upper bounds of the latency histogram, seconds
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[str, Mapping[str, str], float]


class Metrics:
    """Requests by action and status, and how long they took."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def observe(self, action: str, status: int, seconds: float) -> None:
        """Count one request. ``action`` must be one of the known names."""
        self.requests[action, status] += 1
        buckets = self._buckets.setdefault(action, [0] * (len(BUCKETS) + 1))
        place = next((i for i, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))
        buckets[place] += 1
        self._seconds[action] += seconds

    def samples(self) -> Iterable[Sample]:
        """Everything counted here."""
        for (action, status), count in sorted(self.requests.items()):
            labels = {"action": action, "status": str(status)}
            yield "shop_requests_total", labels, count
        for action, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                total += count
                yield "shop_request_seconds_bucket", {"action": action, "le": bound}, total
            yield "shop_request_seconds_sum", {"action": action}, self._seconds[action]
            yield "shop_request_seconds_count", {"action": action}, total


_TYPES = {
    "shop_requests_total": "counter",
    "shop_request_seconds": "histogram",
    "shop_leases_expired_total": "counter",
}


def exposition(samples: Iterable[Sample]) -> str:
    """Samples as text, those of one family together; gauges unless known otherwise."""
    families: dict[str, list[str]] = {}
    for name, labels, value in samples:
        pairs = ",".join(f'{key}="{text}"' for key, text in labels.items())
        families.setdefault(_family(name), []).append(f"{name}{{{pairs}}} {value!r}")
    lines: list[str] = []
    for family, members in families.items():
        lines += [f"# TYPE {family} {_TYPES.get(family, 'gauge')}", *members]
    return "\n".join(lines) + "\n"


def _family(name: str) -> str:
    """A histogram's parts belong to the histogram."""
    for suffix in ("_bucket", "_sum", "_count"):
        if name.endswith(suffix) and name.removesuffix(suffix) in _TYPES:
            return name.removesuffix(suffix)
    return name
