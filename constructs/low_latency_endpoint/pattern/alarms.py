"""Alarms that follow from the plan: on a language model's tokens, and on a shadow variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from constructs import Construct

from ..hosting.endpoint import Endpoint
from ..monitoring.alarms import LatencyAlarms
from ..monitoring.shadow_alarms import ShadowAlarms
from ..options.alarms import DEFAULT_ERROR_RATE, AlarmOptions, Thresholds, TokenAlarmOptions
from ..options.endpoint import MetricsPublishing
from ..plan.plan import Plan
from ..plan.token_plan import BETWEEN_TOKENS, FIRST_TOKEN
from ..plan.token_warnings import NO_TOKEN_ALARMS
from ..synthesis.annotations import warn

if TYPE_CHECKING:
    from ..monitoring.token_alarms import TokenLatencyAlarms


_SHADOW_LATENCY_RATIO = 1.2
"""How many times production's latency a shadow's may be: our choice, for want of AWS's."""


def token_alarms(
    scope: Construct,
    endpoint: Endpoint,
    plans: Mapping[str, Plan],
    latency_alarms: LatencyAlarms,
    metrics: MetricsPublishing | None,
) -> dict[str, TokenLatencyAlarms]:
    """Alarms on tokens where the server's metrics are known; they page as latency's do."""
    options = latency_alarms.options.tokens
    of_server: dict[str, list[str]] = {}
    watched: dict[str, TokenAlarmOptions] = {}
    for name, plan in plans.items():
        server, share = plan.request.server_of_metrics, plan.request.share
        token_alarm_options = _watched(plan, options)
        limits = (
            token_alarm_options.ttft,
            token_alarm_options.itl,
            token_alarm_options.waiting_requests,
            token_alarm_options.kv_cache_use,
        )
        watches = any(limit not in (None, {}) for limit in limits)
        if server is not None and watches and not (share is not None and share.shadow):
            of_server.setdefault(server, []).append(name)
            watched.setdefault(server, replace(token_alarm_options, server=server))
    if not of_server:
        if options != TokenAlarmOptions() and not any(plan.tokens for plan in plans.values()):
            warn(scope, "noTokenAlarms", f"{NO_TOKEN_ALARMS[0].upper()}{NO_TOKEN_ALARMS[1:]}.")
        return {}
    from ..monitoring.token_alarms import TokenLatencyAlarms  # few endpoints have them

    if metrics is not None and metrics.detailed_observability is False:
        warn(
            scope,
            "tokensNotPublished",
            "The alarms on tokens find no data and never alarm, because the containers' "
            "metrics are not published. Leave out metrics.detailed_observability, or "
            "turn these alarms off.",
        )
    return {
        server: TokenLatencyAlarms(
            scope,
            "TokenAlarms" if at == 0 else f"TokenAlarms-{server}",
            endpoint=endpoint,
            variants=names,
            options=watched[server],
            actions=latency_alarms.options.actions,
            actions_suppressor=latency_alarms.actions_suppressor,
        )
        for at, (server, names) in enumerate(of_server.items())
    }


def _watched(plan: Plan, options: TokenAlarmOptions) -> TokenAlarmOptions:
    """What is stated, and the plan's for the rest."""
    return replace(
        options,
        ttft=_thresholds(plan, FIRST_TOKEN, options.ttft),
        itl=_thresholds(plan, BETWEEN_TOKENS, options.itl),
    )


def _thresholds(plan: Plan, measures: str, stated: Thresholds | str | None) -> Thresholds | None:
    if not isinstance(stated, str):
        return stated
    planned = plan.tokens.thresholds if plan.tokens else ()
    return {
        each.percentile: timedelta(seconds=each.seconds)
        for each in planned
        if each.measures == measures
    }


def peak_tps_of(plans: Mapping[str, Plan]) -> dict[str, float]:
    """The requests per second of each variant at its peak, where it is known."""
    return _known({name: plan.request.peak_tps for name, plan in plans.items()})


def quiet_tps_of(plans: Mapping[str, Plan]) -> dict[str, float]:
    """The requests per second of each variant at the lowest peak of the day, where it is known."""
    return _known({name: plan.request.quiet_tps for name, plan in plans.items()})


def _known(rates: Mapping[str, float | None]) -> dict[str, float]:
    return {name: rate for name, rate in rates.items() if rate}


def shadow_alarms(
    scope: Construct, endpoint: Endpoint, plans: Mapping[str, Plan], options: AlarmOptions
) -> ShadowAlarms | None:
    """Where there is a shadow: on the statistics of the target, by default p99, and on failures."""
    if endpoint.shadow is None:
        return None
    plan = plans[endpoint.shadow.name]
    latency = plan.request.latency
    statistics = list(latency.milliseconds if latency else ()) or ["p99"]
    limit = options.error_limit
    return ShadowAlarms(
        scope,
        "ShadowAlarms",
        endpoint=endpoint,
        latency_ratio=dict.fromkeys(statistics, _SHADOW_LATENCY_RATIO),
        error_rate=limit.rate if limit else DEFAULT_ERROR_RATE,
        minimum_failures=options.minimum_failures,
        minimum_invocations=options.minimum_invocations,
        period=options.period,
        evaluation_periods=options.evaluation_periods,
        datapoints_to_alarm=options.datapoints_to_alarm,
        peak_tps=plan.request.peak_tps,
    )
