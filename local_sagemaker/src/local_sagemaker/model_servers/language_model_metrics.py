"""What a language model's server tells Prometheus: names, labels and buckets of vLLM v1.

Source: vllm-project/vllm, `vllm/v1/metrics/loggers.py`. Times are seconds inside the server: from a
request's arrival, without the network and without SageMaker.
"""

from __future__ import annotations

import bisect
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_BETWEEN_TOKENS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
_WHOLE = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)


class Histogram:
    """Counts by upper limit.

    Parameters
    ----------
    limits
        In ascending order; infinity goes without saying.
    """

    def __init__(self, limits: Sequence[float]) -> None:
        self._limits = limits
        self._counts = [0] * (len(limits) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value in."""
        self._counts[bisect.bisect_left(self._limits, value)] += 1
        self._sum += value

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Give suffix, further labels and value of each line."""
        total = 0
        for limit, count in zip((*self._limits, None), self._counts, strict=True):
            total += count
            yield "_bucket", {"le": "+Inf" if limit is None else str(limit)}, total
        yield "_count", {}, total
        yield "_sum", {}, self._sum


class Metrics:
    """What is counted of the requests.

    Parameters
    ----------
    model_name
        The label of that name.
    """

    def __init__(self, model_name: str) -> None:
        self._labels = {"engine": "0", "model_name": model_name}
        self.first_token = Histogram(_FIRST_TOKEN)
        self.between_tokens = Histogram(_BETWEEN_TOKENS)
        self.per_output_token = Histogram(_BETWEEN_TOKENS)
        self.whole = Histogram(_WHOLE)
        self.queue = Histogram(_WHOLE)
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.finished: Counter[str] = Counter(stop=0, length=0, abort=0)

    def text(self, gauges: Mapping[str, float], counters: Mapping[str, float]) -> str:
        """Write everything in Prometheus's text format.

        Parameters
        ----------
        gauges, counters
            The scheduler's, by name without ``vllm:``.
        """
        histograms = {
            "time_to_first_token_seconds": self.first_token,
            "inter_token_latency_seconds": self.between_tokens,
            "request_time_per_output_token_seconds": self.per_output_token,
            "e2e_request_latency_seconds": self.whole,
            "request_queue_time_seconds": self.queue,
        }
        counted = {
            **counters,
            "prompt_tokens_total": self.prompt_tokens,
            "generation_tokens_total": self.generation_tokens,
        }
        lines = []
        for name, value in gauges.items():
            lines += [_kind(name, "gauge"), self._line(name, value)]
        for name, value in counted.items():
            lines += [_kind(name, "counter"), self._line(name, value)]
        lines.append(_kind("request_success_total", "counter"))
        for reason, count in self.finished.items():
            lines.append(self._line("request_success_total", count, finished_reason=reason))
        for name, histogram in histograms.items():
            lines.append(_kind(name, "histogram"))
            for suffix, labels, value in histogram.samples():
                lines.append(self._line(name + suffix, value, **labels))
        return "\n".join([*lines, ""])

    def _line(self, name: str, value: float, **labels: str) -> str:
        # JSON escapes a quote, a backslash and a new line as the format does.
        written = ",".join(
            f"{key}={json.dumps(text, ensure_ascii=False)}"
            for key, text in {**self._labels, **labels}.items()
        )
        return f"vllm:{name}{{{written}}} {float(value)}"


def _kind(name: str, kind: str) -> str:
    return f"# TYPE vllm:{name} {kind}"
