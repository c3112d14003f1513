"""CloudWatch metrics of an endpoint's variants, made from the one table of facts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Literal

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import Metric

from ..facts.durations import seconds_of
from ..facts.metrics import check_statistic, metric_facts
from ..facts.rules import METRIC_PERIOD, NEW_FLEET_NOT_KNOWN
from ..options.argument_kinds import checked_arguments
from ..plan.published_metrics import check_published
from .variant import VariantAttributes

_NEW_FLEET = "EndpointConfigName"


@checked_arguments
class MetricSource:
    """``metric_*`` methods over :meth:`metric`, for endpoints and for single variants.

    Every method takes the statistic, and ``period``, ``fleet`` and ``dimensions`` as
    :meth:`metric` does. Latencies are in microseconds, as SageMaker publishes them.
    """

    @abstractmethod
    def metric(
        self,
        name: str,
        *,
        statistic: str,
        period: Duration | timedelta | str | None = None,
        fleet: Literal["whole", "new"] = "whole",
        dimensions: Mapping[str, str] | None = None,
    ) -> Metric:
        """A metric by its name in CloudWatch, such as ``ModelLatency``.

        Parameters
        ----------
        name : str
        statistic : str
            ``Average``, ``Sum``, ``p99``, ... as far as CloudWatch lists it for the metric.
        period : Duration, optional
            By default 1 minute; 10 seconds for the high-resolution ones.
        fleet : {"whole", "new"}
            ``new`` is the fleet of this configuration alone (``EndpointConfigName``): what a
            deployment brings up, and after it the whole fleet.
        dimensions : mapping of str to str, optional
            Further dimensions: ``InstanceId``, ``ContainerId``, ``AcceleratorId`` need enhanced
            metrics; ``Region`` with ``AvailabilityZone`` and ``InstanceType`` tell zones apart
            (AWS names no switch for these, and does not say whether the zone is a name or an ID).

        Raises
        ------
        ConfigurationError
            LLE730 to LLE732 for name and statistic, LLE366 for the period, LLE722 when this
            endpoint does not publish it, with the reason.
        """

    def metric_invocations(self, statistic: str = "Sum", **options: Any) -> Metric:
        """Requests sent to the variant."""
        return self.metric("Invocations", statistic=statistic, **options)

    def metric_invocations_per_instance(self, statistic: str = "Sum", **options: Any) -> Metric:
        """Requests per instance: each counts 1/n with n instances. Scaling tracks it."""
        return self.metric("InvocationsPerInstance", statistic=statistic, **options)

    def metric_model_latency(self, statistic: str = "p99", **options: Any) -> Metric:
        """Time in the model's container as SageMaker sees it, in microseconds."""
        return self.metric("ModelLatency", statistic=statistic, **options)

    def metric_overhead_latency(self, statistic: str = "Average", **options: Any) -> Metric:
        """Time that SageMaker adds, in microseconds; CloudWatch lists no percentiles."""
        return self.metric("OverheadLatency", statistic=statistic, **options)

    def metric_invocation_4xx_errors(self, statistic: str = "Sum", **options: Any) -> Metric:
        """Requests answered with a 4xx; ``Average`` is their share."""
        return self.metric("Invocation4XXErrors", statistic=statistic, **options)

    def metric_invocation_5xx_errors(self, statistic: str = "Sum", **options: Any) -> Metric:
        """Requests answered with a 5xx; ``Average`` is their share."""
        return self.metric("Invocation5XXErrors", statistic=statistic, **options)

    def metric_invocation_model_errors(self, statistic: str = "Sum", **options: Any) -> Metric:
        """Requests that the model did not answer with 2xx; ``Average`` is their share."""
        return self.metric("InvocationModelErrors", statistic=statistic, **options)

    def metric_mid_stream_errors(self, statistic: str = "Sum", **options: Any) -> Metric:
        """Streamed responses that broke off."""
        return self.metric("MidStreamErrors", statistic=statistic, **options)

    def metric_concurrent_requests_per_model(
        self, statistic: str = "Maximum", **options: Any
    ) -> Metric:
        """Requests in flight, those queued in the container too, every 10 seconds."""
        return self.metric("ConcurrentRequestsPerModel", statistic=statistic, **options)

    def metric_cpu_utilization(self, statistic: str = "Average", **options: Any) -> Metric:
        """CPU in percent of one vCPU: 0 to 100 times the vCPUs."""
        return self.metric("CPUUtilization", statistic=statistic, **options)

    def metric_memory_utilization(self, statistic: str = "Average", **options: Any) -> Metric:
        """Memory in percent."""
        return self.metric("MemoryUtilization", statistic=statistic, **options)

    def metric_disk_utilization(self, statistic: str = "Average", **options: Any) -> Metric:
        """Disk in percent."""
        return self.metric("DiskUtilization", statistic=statistic, **options)

    def metric_gpu_utilization(self, statistic: str = "Average", **options: Any) -> Metric:
        """GPU in percent of one GPU: 0 to 100 times the GPUs."""
        return self.metric("GPUUtilization", statistic=statistic, **options)

    def metric_gpu_memory_utilization(self, statistic: str = "Average", **options: Any) -> Metric:
        """GPU memory in percent of one GPU: 0 to 100 times the GPUs."""
        return self.metric("GPUMemoryUtilization", statistic=statistic, **options)

    def metric_model_loading_wait_time(self, statistic: str = "Average", **options: Any) -> Metric:
        """Multi-model: wait for a model to be loaded, in microseconds."""
        return self.metric("ModelLoadingWaitTime", statistic=statistic, **options)

    def metric_model_unloading_time(self, statistic: str = "Average", **options: Any) -> Metric:
        """Multi-model: time to unload a model, in microseconds."""
        return self.metric("ModelUnloadingTime", statistic=statistic, **options)

    def metric_model_downloading_time(self, statistic: str = "Average", **options: Any) -> Metric:
        """Multi-model: time to fetch a model from S3, in microseconds."""
        return self.metric("ModelDownloadingTime", statistic=statistic, **options)

    def metric_model_loading_time(self, statistic: str = "Average", **options: Any) -> Metric:
        """Multi-model: time to load a model, in microseconds."""
        return self.metric("ModelLoadingTime", statistic=statistic, **options)

    def metric_model_cache_hit(self, statistic: str = "Average", **options: Any) -> Metric:
        """Multi-model: share of requests that found their model loaded."""
        return self.metric("ModelCacheHit", statistic=statistic, **options)

    def metric_loaded_model_count(self, statistic: str = "Average", **options: Any) -> Metric:
        """Multi-model: models loaded."""
        return self.metric("LoadedModelCount", statistic=statistic, **options)


class EndpointVariant(MetricSource):
    """One production variant of an endpoint, with its metrics; see :meth:`Endpoint.variant`.

    Attributes
    ----------
    name : str
    attributes : VariantAttributes
        What it runs on.
    """

    def __init__(
        self,
        attributes: VariantAttributes,
        *,
        endpoint_name: str,
        endpoint_config_name: str | None,
        enhanced: bool,
        where: str,
    ) -> None:
        self.attributes = attributes
        self.name = attributes.name
        self._endpoint_name = endpoint_name
        self._endpoint_config_name = endpoint_config_name
        self._enhanced = enhanced
        self._where = where

    def named(self, endpoint_name: str) -> EndpointVariant:
        """The same variant, whose metrics carry the endpoint's name as it is written here."""
        return EndpointVariant(
            self.attributes,
            endpoint_name=endpoint_name,
            endpoint_config_name=self._endpoint_config_name,
            enhanced=self._enhanced,
            where=self._where,
        )

    def metric(
        self,
        name: str,
        *,
        statistic: str,
        period: Duration | timedelta | str | None = None,
        fleet: Literal["whole", "new"] = "whole",
        dimensions: Mapping[str, str] | None = None,
    ) -> Metric:
        facts = metric_facts(name, where=self._where)
        check_statistic(name, statistic, self._where)
        further = dict(dimensions or {})
        if fleet == "new":
            if self._endpoint_config_name is None:
                raise NEW_FLEET_NOT_KNOWN.error(
                    got='fleet="new" of an imported endpoint',
                    allowed="an import with endpoint_config_name",
                    where=self._where,
                )
            further[_NEW_FLEET] = self._endpoint_config_name
        check_published(
            facts,
            shape=self.attributes.shape,
            further=frozenset(further),
            enhanced=self._enhanced,
            instance_types=[instance_type.name for instance_type in self.attributes.instance_types],
            of=f"{self._endpoint_name}/{self.name}",
            where=self._where,
        )
        return Metric(
            namespace=facts.namespace,
            metric_name=name,
            dimensions_map={
                "EndpointName": self._endpoint_name,
                "VariantName": self.name,
                **further,
            },
            statistic=statistic,
            period=checked_period(period, facts.period_seconds, self._where),
        )


def checked_period(
    period: Duration | timedelta | str | None, default: float, where: str
) -> Duration:
    """The period of a metric, by default so many seconds."""
    seconds = default if period is None else seconds_of(period, where)
    if seconds not in (1, 5, 10, 30) and (seconds < 60 or seconds % 60):
        raise METRIC_PERIOD.error(
            got=f"{seconds:g} seconds",
            allowed="whole minutes, or 1, 5, 10, 30 seconds",
            where=where,
        )
    return _whole(seconds)


@cache
def _whole(seconds: float) -> Duration:
    """The same value for all metrics: each would be a call to Node.js."""
    return Duration.seconds(seconds)
