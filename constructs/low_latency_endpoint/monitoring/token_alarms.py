"""Alarms on what a language model's server tells of its tokens, by PromQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from aws_cdk import CfnResource, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ..errors.frozen import dataclass
from ..facts.container_metrics import (
    ALARM_WAIT_SECONDS,
    NOTHING_WATCHED,
    QUERY_WINDOW_SECONDS,
    above,
    check_interval,
    container_metric,
    count_query,
    fullest_query,
    percentile_query,
    percentile_share,
    promql_regions,
)
from ..facts.durations import milliseconds_of, seconds_of
from ..facts.rules import UNKNOWN_VARIANT
from ..hosting.endpoint_interface import IEndpoint
from ..options.alarms import Thresholds, TokenAlarmOptions, flattened
from ..options.argument_kinds import checked_arguments
from ..synthesis.annotations import warn
from ..synthesis.construct_tree import keep_alarm_name, path_below, region_of
from ..synthesis.template_values import is_token
from .alarm_specifications import DescribedAlarm
from .alarms import is_on, paging_alarms
from .dashboard_panels import TokenPanels

_TTFT, _ITL = "time_to_first_token", "inter_token_latency"
_MEANINGS = {
    _TTFT: (
        "TimeToFirstToken",
        "the time to first token",
        "prompts wait or are long: callers see nothing for longer than they may",
        "requests that wait, prompt lengths and the prefix cache's hits; then the number of "
        "instances",
    ),
    _ITL: (
        "InterTokenLatency",
        "the inter-token latency",
        "too many sequences are decoded at a time, or long prompts come between",
        "requests that run per instance, chunked prefill; then the number of instances",
    ),
}


@dataclass(frozen=True, kw_only=True)
class _Watched(DescribedAlarm):
    """One alarm to make."""

    query: str


@checked_arguments
class TokenLatencyAlarms(Construct):
    """Alarms on times to first token, inter-token latencies, waiting requests and KV cache.

    They ask what the server measures (PromQL over its ``/metrics``), which SageMaker publishes
    with detailed observability, on by default for new endpoint configurations. The times are
    inside the server: what callers see has network and SageMaker's own time besides.

    **A PromQL alarm whose query finds nothing is OK**: a metric of another name, an account
    without OTel enrichment and a server without metrics never alarm, and no setting changes that.
    AWS's pages contradict each other on the names, so each query asks for all of them; run
    ``low-latency verify`` after the first requests, which demands data of each alarm. SGLang tells
    metrics only with ``SM_SGLANG_ENABLE_METRICS=true``.

    Not for ``rollback_alarms``: AWS does not say whether SageMaker takes PromQL alarms there, and
    without data they would let every deployment pass. Give those :class:`LatencyAlarms`.

    Attributes
    ----------
    alarms : dict of str to aws_cloudwatch.IAlarm
        By ``<variant>/TimeToFirstToken/<percentile>`` (``InterTokenLatency``, and with severities
        ``/<severity>``), ``<variant>/RequestsWaiting`` and ``<variant>/KvCacheUse``.
    composites : dict of str to aws_cloudwatch.CompositeAlarm
        By severity; ``""`` for alarms without one.
    queries : dict of str to str
        What each of the alarms asks, by the same keys.
    panels : tuple of TokenPanels
        What a :class:`LatencyDashboard` draws of them, a variant each.

    Examples
    --------
    ``TokenLatencyAlarms(self, "Tokens", endpoint=endpoint, actions=[SnsAction(topic)],
    options=TokenAlarmOptions(ttft={"p95": "500ms"}, itl={"p95": "50ms"}, kv_cache_use=0.95))``
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: IEndpoint,
        variants: Sequence[str] | None = None,
        options: TokenAlarmOptions,
        window: Duration | timedelta | str = timedelta(minutes=5),
        evaluation_interval: Duration | timedelta | str = timedelta(minutes=1),
        pending_period: Duration | timedelta | str = timedelta(minutes=2),
        recovery_period: Duration | timedelta | str = timedelta(minutes=5),
        actions: Sequence[cloudwatch.IAlarmAction] = (),
        actions_suppressor: cloudwatch.IAlarm | None = None,
    ) -> None:
        """Alarms on times to first token, inter-token latencies, waiting requests and KV cache.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            endpoint: An :class:`Endpoint`, or one imported with its variants.
            variants: The variants to watch; by default all of production.
            options: What to watch; without a ``server`` vLLM's metrics, and ``"planned"`` watches nothing here, where no plan is.
            window: What percentiles and averages are of; by default 5 minutes. At least twice the metric publish frequency (one minute unless set), else there is no rate; four times is better.
            evaluation_interval: 10, 20, 30 seconds or whole minutes; by default 1 minute.
            pending_period: How long it must breach without a break; by default 2 minutes.
            recovery_period: How long it must not, until the alarm is OK again; by default 5 minutes.
            actions: What the composite alarm does, such as ``SnsAction(topic)``; by default nothing.
            actions_suppressor: Holds the actions back while it is on: that of :class:`LatencyAlarms` with ``quiet_during_deployments``. By default nothing does.

        Raises:
            ConfigurationError: LLE990 to LLE995 and LLE997, LLE631 for an endpoint imported
                without variants, LLE801 and LLE807 for arguments of another kind.
        """
        super().__init__(scope, id)
        self._endpoint, self._options = endpoint, options
        self._server = server = options.server or "vllm"
        self._path = path = path_below(self, scope, id)
        self._window = _seconds(window)
        QUERY_WINDOW_SECONDS.check(self._window, path)
        self._interval = check_interval(_seconds(evaluation_interval), path)
        self._pending, self._recovery = (_seconds(pending_period), _seconds(recovery_period))
        for seconds in (self._pending, self._recovery):
            ALARM_WAIT_SECONDS.check(seconds, path)
        self.alarms: dict[str, cloudwatch.IAlarm] = {}
        self.queries: dict[str, str] = {}
        rules: dict[str, list[str]] = {}
        names = self._variant_names(variants)
        for name in names:
            watched = [
                *self._percentiles(name, _TTFT, options.ttft),
                *self._percentiles(name, _ITL, options.itl),
                *self._fullest(name, options.waiting_requests, options.kv_cache_use),
            ]
            for alarm in watched:
                rules.setdefault(alarm.severity, []).append(is_on(self._alarm(name, alarm)))
        if not rules:
            raise NOTHING_WATCHED.error(got="nothing", allowed="at least one of them", where=path)
        self.panels = tuple(
            TokenPanels(
                server=server,
                variant=name,
                limits={_TTFT: _limits(options.ttft), _ITL: _limits(options.itl)},
                waiting=options.waiting_requests,
                kv_cache_use=options.kv_cache_use,
            )
            for name in names
        )
        self._look_at_region()
        self.composites: dict[str, cloudwatch.CompositeAlarm] = paging_alarms(
            self,
            rules,
            endpoint_name=endpoint.name_in(self),
            says="one or more of its alarms on tokens are on. ",
            actions=actions,
            suppressor=actions_suppressor,
        )

    def _variant_names(self, wanted: Sequence[str] | None) -> list[str]:
        known = [variant.name for variant in self._endpoint.known_variants()]
        for name in wanted or ():
            if name not in known:
                raise UNKNOWN_VARIANT.error(
                    got=repr(name), allowed=", ".join(known), where=self._path
                )
        return list(wanted) if wanted is not None else known

    def _of(self, variant: str) -> dict[str, Any]:
        return {
            "endpoint": self._endpoint.name_in(self),
            "variant": variant,
            "window_seconds": self._window,
        }

    def _percentiles(
        self, variant: str, meaning: str, thresholds: Thresholds | str | None
    ) -> Iterator[_Watched]:
        metric = container_metric(self._server, meaning, self._path)
        requests = container_metric(self._server, _TTFT, self._path)
        name, words, means, look_first = _MEANINGS[meaning]
        least = self._options.minimum_requests
        for severity, percentile, threshold in flattened(thresholds):
            share, milliseconds = percentile_share(percentile), milliseconds_of(threshold)
            enough = count_query(requests, **self._of(variant))
            yield _Watched(
                key=f"{name}/{percentile}" + (f"/{severity}" if severity else ""),
                query=above(
                    percentile_query(metric, share, **self._of(variant)),
                    milliseconds / 1000,
                    least=(enough, least) if least else None,
                ),
                when=f"{percentile} of {words} in the server is above {milliseconds:g} ms",
                means=means,
                look_first=look_first,
                severity=severity,
            )

    def _fullest(
        self, variant: str, waiting: float | None, cache: float | None
    ) -> Iterator[_Watched]:
        if waiting is not None:
            metric = container_metric(self._server, "requests_waiting", self._path)
            yield _Watched(
                key="RequestsWaiting",
                query=above(fullest_query(metric, **self._of(variant)), waiting),
                when=f"more than {waiting:g} requests wait on an instance",
                means="the server has no room for more sequences: times to first token rise",
                look_first="the KV cache's use and the requests that run; then scaling's target",
            )
        if cache is not None:
            metric = container_metric(self._server, "kv_cache_use", self._path)
            yield _Watched(
                key="KvCacheUse",
                query=above(fullest_query(metric, **self._of(variant)), cache),
                when=f"more than {cache * 100:g} % of an instance's KV cache is in use",
                means="sequences will wait, or be preempted and computed again",
                look_first="lengths of prompts and answers, and the requests that run at a time",
            )

    def _alarm(self, variant: str, watched: _Watched) -> cloudwatch.IAlarm:
        key = f"{variant}/{watched.key}"
        name = self._endpoint.name_in(self)
        alarm = _query_alarm(
            self,
            key.replace("/", "-"),
            query=watched.query,
            interval=self._interval,
            pending=self._pending,
            recovery=self._recovery,
            description=f"{watched.text(f'{name}/{variant}')} No data is OK: see that low-latency "
            f"verify finds some. Run: low-latency diagnose {name}",
        )
        self.alarms[key], self.queries[key] = alarm, watched.query
        return alarm

    def _look_at_region(self) -> None:
        region = region_of(self)
        if not is_token(region) and region not in promql_regions():
            warn(
                self,
                "queriesNotInRegion",
                f"AWS does not list {region} among the Regions with PromQL queries: these "
                "alarms would be refused, or never alarm. Acknowledge this warning if AWS "
                "has added the Region since.",
            )


def _limits(thresholds: Thresholds | str | None) -> dict[str, float]:
    """Milliseconds by percentile, with the severity before it."""
    return {
        f"{severity} {percentile}".strip(): milliseconds_of(threshold)
        for severity, percentile, threshold in flattened(thresholds)
    }


def _query_alarm(
    scope: Construct,
    id: str,
    *,
    query: str,
    interval: float,
    pending: float,
    recovery: float,
    description: str,
) -> cloudwatch.IAlarm:
    """A PromQL alarm, as CloudFormation has it where aws-cdk-lib does not know it yet."""
    if hasattr(cloudwatch, "PromQLAlarm"):
        return cloudwatch.PromQLAlarm(
            scope,
            id,
            query=query,
            evaluation_interval=Duration.seconds(interval),
            pending_period=Duration.seconds(pending),
            recovery_period=Duration.seconds(recovery),
            alarm_description=description,
        )
    holder = Construct(scope, id)
    criteria = {"Query": query, "PendingPeriod": pending, "RecoveryPeriod": recovery}
    resource = CfnResource(
        holder,
        "Resource",
        type="AWS::CloudWatch::Alarm",
        properties={
            "AlarmDescription": description,
            "EvaluationCriteria": {"PromQLCriteria": criteria},
            "EvaluationInterval": interval,
        },
    )
    arn = resource.get_att("Arn").to_string()
    return keep_alarm_name(cloudwatch.Alarm.from_alarm_arn(holder, "Alarm", arn), resource.ref)


def _seconds(duration: Duration | timedelta | str) -> float:
    seconds = seconds_of(duration)
    return int(seconds) if seconds == int(seconds) else seconds
