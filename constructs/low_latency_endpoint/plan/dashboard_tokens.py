"""The dashboard's graphs of a language model's tokens: what its server tells, by PromQL.

CloudWatch draws PromQL in widgets of the type ``chart`` (`Dashboard Body Structure and Syntax
<https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Dashboard-Body-Structure.html>`_,
"Properties of a Chart Widget Object"); not seen on AWS yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ..errors.frozen import dataclass
from ..facts.container_metrics import container_metric, fullest_query, percentile_query
from ..report.numbers import milliseconds

_PERCENTILES = (0.5, 0.95, 0.99)
_LIMIT = "#d62728"


@dataclass(frozen=True, kw_only=True)
class TokenPanels:
    """What to draw of one variant's tokens."""

    server: str  # vllm or sglang: whose metrics they are
    variant: str
    # where an alarm starts, in milliseconds by percentile, of time_to_first_token and
    # inter_token_latency
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    waiting: float | None = None  # requests that wait, above which an alarm is on
    kv_cache_use: float | None = None  # the share above which one is

    def charts(self, endpoint: str, region: str, suffix: str = "") -> list[dict[str, Any]]:
        """The properties of the graphs, each a widget of the type ``chart``."""

        def percentiles(title: str, meaning: str) -> dict[str, Any]:
            metric = container_metric(self.server, meaning)
            queries = {
                f"p{share * 100:g}": percentile_query(
                    metric, share, endpoint=endpoint, variant=self.variant
                )
                for share in _PERCENTILES
            }
            lines = [(label, f"1000 * ({query})") for label, query in queries.items()]
            limits = [
                (f"alarm: {name} above {milliseconds(value, 6)}", value)
                for name, value in self.limits.get(meaning, {}).items()
            ]
            return _chart(title + suffix, region, "ms, in the server", lines, limits)

        def fullest(meaning: str, factor: str = "") -> str:
            metric = container_metric(self.server, meaning)
            return f"{factor}({fullest_query(metric, endpoint=endpoint, variant=self.variant)})"

        waiting = [] if self.waiting is None else [("alarm: waiting", self.waiting)]
        cache = [] if self.kv_cache_use is None else [("alarm", self.kv_cache_use * 100)]
        return [
            percentiles("How long until the first token?", "time_to_first_token"),
            percentiles("How long between two tokens?", "inter_token_latency"),
            _chart(
                f"What runs, and what waits?{suffix}",
                region,
                "requests on the fullest instance",
                [
                    ("running", fullest("requests_running")),
                    ("waiting", fullest("requests_waiting")),
                ],
                waiting,
            ),
            _chart(
                f"How full is the KV cache?{suffix}",
                region,
                "% on the fullest instance",
                [("in use", fullest("kv_cache_use", "100 * "))],
                cache,
            ),
        ]


def _chart(
    title: str,
    region: str,
    axis: str,
    lines: Sequence[tuple[str, str]],
    limits: Sequence[tuple[str, float]],
) -> dict[str, Any]:
    options: dict[str, Any] = {
        "legend": {"position": "bottom", "show": True},
        "yAxis": [{"min": 0, "title": axis}],
    }
    if limits:
        options["annotations"] = {
            "horizontal": [
                {"type": "static", "label": label, "value": value, "color": _LIMIT}
                for label, value in limits
            ]
        }
    queries = [
        {
            "id": f"q{number}",
            "type": "cloudwatch-metrics",
            "language": "PromQL",
            "query": query,
            "label": label,
        }
        for number, (label, query) in enumerate(lines, 1)
    ]
    return {
        "view": "line",
        "title": title,
        "region": region,
        "data": {"queries": queries},
        "plotOptions": options,
    }
