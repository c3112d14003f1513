"""What a histogram holds, bucket by bucket."""

from __future__ import annotations

from collections.abc import Iterator

from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram, _bounds


def buckets(latencies: LatencyHistogram) -> Iterator[tuple[float, float, int]]:
    """From, up to (seconds) and number of samples of each filled bucket, in order."""
    for index in sorted(latencies._buckets):
        low, high = _bounds(index)
        yield low / 1e9, (high + 1) / 1e9, latencies._buckets[index]
