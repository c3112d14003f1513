"""What the pages of MetricDataQuery and MetricStat refuse of several queries, or by a statistic's name.

CloudWatch, Application Auto Scaling and Application Signals have them in the same words. The words
of the refusals are ours. What one query shows by itself is in `request_rules.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .metric_store import parse_statistic


def problems_of_queries(
    queries: Sequence[Mapping[str, Any]], *, one_result: bool = False
) -> Iterator[str]:
    """Say what is wrong with the queries of one request, of which one result may be wanted."""
    for query in queries:
        name = (query.get("MetricStat") or {}).get("Stat")
        if name is not None and parse_statistic(name) is None:
            yield f"The statistic '{name}' does not exist"
    if len({query["Id"] for query in queries}) < len(queries):
        yield "The Ids of the metrics list must be unique"
    results = sum(query.get("ReturnData") is not False for query in queries)
    if one_result and queries and results != 1:
        yield "Exactly one of the metrics must return data"
