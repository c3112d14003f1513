"""The alarms on tokens of an endpoint of a settings file: stated, or the plan's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..plan.decisions import Decision
from ..plan.plan import Plan
from ..plan.token_explanations import explain_limit
from ..plan.token_plan import BETWEEN_TOKENS, FIRST_TOKEN, TokenThreshold
from .endpoint import EndpointSettings

_STATED = {FIRST_TOKEN: "ttft", BETWEEN_TOKENS: "itl"}


def token_limits(endpoint: EndpointSettings, plan: Plan) -> list[TokenThreshold]:
    """What the alarms on tokens of one variant watch by percentile; none of an unknown server."""
    if plan.request.server_of_metrics is None:
        return []
    own = endpoint.alarms.tokens
    planned = plan.tokens.thresholds if plan.tokens else ()
    found: list[TokenThreshold] = []
    for measures, name in _STATED.items():
        stated = getattr(own, name)
        if stated == "planned":
            found += [each for each in planned if each.measures == measures]
        else:
            found += [
                TokenThreshold(measures, percentile, 0.0, 1.0, each.total_seconds())
                for percentile, each in stated.items()
            ]
    return found


def token_alarm_count(endpoint: EndpointSettings, plan: Plan) -> int:
    """How many alarms on tokens one variant has."""
    if plan.request.server_of_metrics is None:
        return 0
    own = endpoint.alarms.tokens
    gauges = (own.waiting_requests, own.kv_cache_use)
    return len(token_limits(endpoint, plan)) + sum(each is not None for each in gauges)


def stated_limits(endpoint: EndpointSettings, plan: Plan) -> Iterator[Decision]:
    """Decisions on limits that the settings state in place of the plan's."""
    for each in token_limits(endpoint, plan):
        if not each.target:  # no target: a threshold of one's own
            yield replace(
                explain_limit(each, chosen=True),
                rule="your threshold",
                inputs={"measures": each.measures, "percentile": each.percentile},
                overridden=True,
            )
