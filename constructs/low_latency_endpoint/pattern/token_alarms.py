"""A plan's limits on tokens as alarms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aws_cdk import Duration
from constructs import Construct

from ..hosting.endpoint import Endpoint
from ..hosting.metrics_publishing import MetricsPublishing
from ..monitoring.alarm_options import Thresholds, TokenAlarmOptions
from ..monitoring.alarms import LatencyAlarms
from ..plan.latency_plan import Plan
from ..plan.token_plan import BETWEEN_TOKENS, FIRST_TOKEN
from ..plan.token_warnings import NO_TOKEN_ALARMS
from ..synthesis.findings import warn

if TYPE_CHECKING:
    from ..monitoring.query_alarms import TokenLatencyAlarms


def token_alarms(
    scope: Construct,
    endpoint: Endpoint,
    plans: Mapping[str, Plan],
    options: TokenAlarmOptions,
    latency_alarms: LatencyAlarms,
    metrics: MetricsPublishing | None,
) -> dict[str, TokenLatencyAlarms]:
    """Alarms on tokens where the server's metrics are known; they page as latency's do."""
    of_server: dict[str, list[str]] = {}
    watched: dict[str, dict[str, Any]] = {}
    for name, plan in plans.items():
        server, share = plan.request.server_of_metrics, plan.request.share
        given = _watched(plan, options)
        if server is not None and given and not (share is not None and share.shadow):
            of_server.setdefault(server, []).append(name)
            watched.setdefault(server, given)
    if not of_server:
        if options != TokenAlarmOptions() and not any(each.tokens for each in plans.values()):
            warn(scope, "noTokenAlarms", f"{NO_TOKEN_ALARMS[0].upper()}{NO_TOKEN_ALARMS[1:]}.")
        return {}
    from ..monitoring.query_alarms import TokenLatencyAlarms  # few endpoints have them

    if metrics is not None and metrics.detailed_observability is False:
        warn(
            scope,
            "tokensNotPublished",
            "The alarms on tokens find nothing, and so never alarm: containers' metrics are not "
            "published. Leave out metrics.detailed_observability, or turn these alarms off.",
        )
    return {
        server: TokenLatencyAlarms(
            scope,
            "TokenAlarms" if at == 0 else f"TokenAlarms-{server}",
            endpoint=endpoint,
            variants=names,
            server=server,
            minimum_requests=options.minimum_requests,
            actions=latency_alarms.options.actions,
            actions_suppressor=latency_alarms.actions_suppressor,
            **watched[server],
        )
        for at, (server, names) in enumerate(of_server.items())
    }


def _watched(plan: Plan, options: TokenAlarmOptions) -> dict[str, Any]:
    """What is stated, and the plan's for the rest; empty where there is nothing to watch."""
    found = {
        "ttft": _thresholds(plan, FIRST_TOKEN, options.ttft),
        "itl": _thresholds(plan, BETWEEN_TOKENS, options.itl),
        "waiting_requests": options.waiting_requests,
        "kv_cache_use": options.kv_cache_use,
    }
    return {name: value for name, value in found.items() if value not in (None, {})}


def _thresholds(plan: Plan, measures: str, stated: Thresholds | str | None) -> Thresholds | None:
    if not isinstance(stated, str):
        return stated
    planned = plan.tokens.thresholds if plan.tokens else ()
    return {
        each.percentile: Duration.millis(each.seconds * 1000)
        for each in planned
        if each.measures == measures
    }
