"""What is told at intervals rather than by request: concurrency, utilisation, silence; alarms."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Mapping, Sequence

from ..cloudwatch import evaluation
from ..cloudwatch.metric_store import as_moment
from ..cloudwatch.state import all_states, state_at
from ..promql.series import Form
from .blueprints import metrics_endpoint
from .clock import TICK
from .endpoints import RuntimeEndpoint
from .fleet import Variant
from .http_client import Broken, Unreachable
from .instances import Instance
from .meter import INSTANCES, INVOCATIONS, Dimensions, Meter, per_one
from .options import RuntimeOptions

_MINUTE = 60.0
_SCRAPE_TIMEOUT = 10.0  # seconds: Prometheus's default. SageMaker says none.


class Observation:
    """Publishes the periodic metrics, and has the alarms judged."""

    def __init__(self, meter: Meter, options: Callable[[], RuntimeOptions]) -> None:
        self._meter = meter
        self._options = options
        self._silent: weakref.WeakSet[Instance] = weakref.WeakSet()
        """Those that have no page of metrics: each question is a line in their logs."""

    async def publish(self, endpoints: Sequence[RuntimeEndpoint], at: float) -> None:
        """Publish what is due at a tick, for the time before it."""
        for endpoint in endpoints:
            told: dict[Instance, dict[str, float]] = {}
            if at % endpoint.frequency < TICK:
                variants = (variant for fleet in endpoint.fleets for variant in fleet)
                instances = [instance for each in variants for instance in each.in_service]
                answers = await asyncio.gather(*(instance.utilization() for instance in instances))
                told = dict(zip(instances, answers, strict=True))
            if endpoint.detailed:
                await self._scrape(endpoint, at)
            # Of the utilisation of components' copies no model server tells, nor is it told.
            for fleet in endpoint.all_fleets:
                for variant in fleet:
                    # AWS lists EndpointConfigName for what counts requests, not for these two.
                    base = list(variant.invocation_dimensions)
                    self._concurrency(endpoint, variant, base, at)
                    self._utilization(endpoint, variant, base, told, at)
                    # Seen: a component that nobody calls has no data (tests/recorded, R5). With zeros
                    # after the first call it can scale in to zero; nobody published that moment.
                    tells = variant.was_asked or not variant.component
                    if tells and at % _MINUTE < TICK:
                        self._silence(endpoint, endpoint.dimensions(fleet, variant), at)

    async def _scrape(self, endpoint: RuntimeEndpoint, at: float) -> None:
        """Keep what the containers tell at their `/metrics`, where it is due."""
        due: list[tuple[Variant, Instance, str]] = []
        for fleet in endpoint.all_fleets:
            for variant in fleet:
                path, frequency = metrics_endpoint(
                    variant.settings, endpoint.hosting, endpoint.frequency
                )
                if at % frequency >= TICK:
                    continue
                due += [(variant, instance, path) for instance in variant.in_service]
        pages = await asyncio.gather(*(self._page(one, path) for _, one, path in due))
        options = self._options()
        form = Form(options.metric_names, options.metric_histograms)
        state = state_at(endpoint.place)
        for (variant, instance, _), page in zip(due, pages, strict=True):
            if page:
                state.enrichment.needed = options.queries_need_enrichment
                with state.lock:
                    state.series.ingest(page, _resource(endpoint, variant, instance), at, form)

    async def _page(self, instance: Instance, path: str) -> str:
        if instance in self._silent:
            return ""
        with contextlib.suppress(TimeoutError, Broken, Unreachable):
            response = await asyncio.wait_for(instance.request(path), _SCRAPE_TIMEOUT)
            if 400 <= response.status < 500:
                self._silent.add(instance)
            if response.status == 200:
                return response.body.decode("utf-8", "replace")
        return ""

    def _concurrency(
        self, endpoint: RuntimeEndpoint, variant: Variant, base: list[Dimensions], at: float
    ) -> None:
        """Tell each instance's most requests at a time in the last ten seconds."""
        begin = at - TICK
        for instance in variant.in_service:
            peak, instance.peak = instance.peak, instance.under_way
            data = [
                {
                    "MetricName": "ConcurrentRequestsPerCopy"
                    if variant.component
                    else "ConcurrentRequestsPerModel",
                    "Unit": "None",
                    "Value": float(peak),
                    "StorageResolution": 1,
                }
            ]
            for dimensions in _with_instance(endpoint, base, instance):
                self._meter.put(endpoint.place, INVOCATIONS, dimensions, begin, data)

    def _utilization(
        self,
        endpoint: RuntimeEndpoint,
        variant: Variant,
        base: list[Dimensions],
        told: dict[Instance, dict[str, float]],
        at: float,
    ) -> None:
        """Tell what the model servers told of their machines."""
        begin = at - endpoint.frequency
        for instance in variant.instances:
            data = [
                {"MetricName": name, "Unit": "Percent", "Value": value, "StorageResolution": 1}
                for name, value in told.get(instance, {}).items()
            ]
            for dimensions in _with_instance(endpoint, base, instance) if data else ():
                self._meter.put(endpoint.place, INSTANCES, dimensions, begin, data)

    def _silence(self, endpoint: RuntimeEndpoint, base: list[Dimensions], at: float) -> None:
        """Tell zero: without traffic SageMaker emits zeros, so that scaling in has data."""
        # Source: SageMaker developer guide, "Auto scaling policies". A zero changes no Sum, the one
        # statistic that AWS lists for these two.
        for dimensions in base:
            data = [
                {"MetricName": name, "Unit": "None", "Value": 0.0}
                for name in ("Invocations", per_one(dimensions))
            ]
            self._meter.put(endpoint.place, INVOCATIONS, dimensions, at - _MINUTE, data)

    @staticmethod
    def judge(at: float) -> None:
        """Have all alarms judged: every minute, or every tick when one has a shorter period."""
        quick = any(
            _period(alarm.settings) < _MINUTE
            for state in all_states()
            for alarm in state.alarms.values()
        )
        if quick or at % _MINUTE < TICK:
            evaluation.evaluate(as_moment(at))


def _period(settings: dict[str, object]) -> float:
    period = settings.get("Period") or settings.get("EvaluationInterval")
    return float(period) if isinstance(period, (int, float)) else _MINUTE


def _resource(endpoint: RuntimeEndpoint, variant: Variant, instance: Instance) -> Mapping[str, str]:
    """Give the labels that SageMaker adds."""
    # Source: SageMaker developer guide, "Connect to your observability tool", "OTel labels
    # available in PromQL".
    name = endpoint.rooms[variant.name][0] if variant.name in endpoint.rooms else variant.name
    labels = {
        "aws.sagemaker.endpoint.name": endpoint.name,
        "aws.sagemaker.variant.name": name,
        "@resource.host.id": instance.id,
        "@resource.cloud.availability_zone": instance.zone,
        "@resource.host.type": str(variant.settings.get("InstanceType", "")),
    }
    if variant.component:
        labels["aws.sagemaker.inference_component.name"] = variant.name
    return {label: value for label, value in labels.items() if value}


def _with_instance(
    endpoint: RuntimeEndpoint, base: list[Dimensions], instance: Instance
) -> list[Dimensions]:
    if not endpoint.enhanced:
        return base
    return [*base, (*base[0], ("InstanceId", instance.id))]
