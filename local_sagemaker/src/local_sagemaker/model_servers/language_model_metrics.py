"""What a language model's server tells Prometheus: names, labels and buckets of vLLM v1.

Source: vllm-project/vllm, `vllm/v1/metrics/loggers.py`. Times are seconds inside the server.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

_LABELS = 'engine="0",model_name="language-model"'
_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_BETWEEN_TOKENS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)


class _Histogram:
    """Counts by upper limit, in ascending order; infinity goes without saying."""

    def __init__(self, name: str, limits: Sequence[float]) -> None:
        self._name, self._limits = name, limits
        self._counts = [0] * (len(limits) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect.bisect_left(self._limits, value)] += 1
        self._sum += value

    def lines(self) -> Iterator[str]:
        yield f"# TYPE {self._name} histogram"
        total = 0
        for limit, count in zip((*self._limits, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{self._name}_bucket{{{_LABELS},le="{limit}"}} {total}'
        yield f"{self._name}_count{{{_LABELS}}} {total}"
        yield f"{self._name}_sum{{{_LABELS}}} {self._sum}"


class Metrics:
    """The times of all tokens, and what runs and waits now."""

    def __init__(self) -> None:
        self._first = _Histogram("vllm:time_to_first_token_seconds", _FIRST_TOKEN)
        self._between = _Histogram("vllm:inter_token_latency_seconds", _BETWEEN_TOKENS)

    def observe(self, seconds: float, *, first: bool) -> None:
        """Count a token that came so long after the one before, the first after its request."""
        (self._first if first else self._between).observe(seconds)

    def text(self, **gauges: float) -> str:
        """Write everything in Prometheus's text format."""
        lines = []
        for name, value in gauges.items():
            lines += [f"# TYPE vllm:{name} gauge", f"vllm:{name}{{{_LABELS}}} {value}"]
        return "\n".join([*lines, *self._first.lines(), *self._between.lines(), ""])
