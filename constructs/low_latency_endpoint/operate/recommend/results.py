"""What jobs answer, read into plain values.

**The unit of ModelLatency.** AWS contradicts itself: the results' page says milliseconds, the page
on how to get them says microseconds in one tab and milliseconds in the other, over the same
example of 263596 at 648 requests per minute. Little's law tells the two apart, for they differ by
a thousand: rate times latency is the number of requests in flight, and the recommender sends with
a few users. See :func:`model_latency_ms`.

Source: https://docs.aws.amazon.com/sagemaker/latest/dg/inference-recommender-interpret-results.html
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .threshold import LatencyThreshold

# The recommender's users call one after another: an hour's phase ends with 183 of them at most, and
# less than half a request in flight on average would mean that it hardly sent any.
_MOST_IN_FLIGHT = 500.0


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One result of a job; ``None`` where AWS gave no value.

    Attributes
    ----------
    number : int
        Its place in the job's answer, from 1: what ``--result`` takes.
    recommendation_id : str
        AWS's own ID; empty for an endpoint that existed before.
    instance_type : str
        Empty for a serverless endpoint.
    instance_count : int or None
        Instances behind the numbers.
    cost_per_hour_usd, cost_per_inference_usd : float or None
        US dollars.
    max_invocations_per_minute : int or None
        Requests per minute that one instance held.
    model_latency_ms : float or None
        Milliseconds at that rate.
    cpu_percent, memory_percent : float or None
        At that rate.
    environment : mapping of str to str
        Environment variables that this result is for.
    inference_specification, compilation_job : str
        A variant of the model package, or a model compiled by Neo; empty for the plain model.
    """

    number: int
    recommendation_id: str
    instance_type: str
    instance_count: int | None
    cost_per_hour_usd: float | None
    cost_per_inference_usd: float | None
    max_invocations_per_minute: int | None
    model_latency_ms: float | None
    cpu_percent: float | None
    memory_percent: float | None
    environment: Mapping[str, str]
    inference_specification: str = ""
    compilation_job: str = ""

    @property
    def tps_per_instance(self) -> float | None:
        """Requests per second that one instance held."""
        return None if not self.max_invocations_per_minute else self.max_invocations_per_minute / 60

    def within(self, threshold: LatencyThreshold) -> bool | None:
        """Whether the latency is within the threshold; ``None`` without a latency."""
        if self.model_latency_ms is None:
            return None
        return self.model_latency_ms <= threshold.milliseconds

    def to_dict(self, threshold: LatencyThreshold) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            **_filled(asdict(self)),
            "tps_per_instance": self.tps_per_instance,
            "within_target": self.within(threshold),
        }


def recommendation(number: int, answer: Mapping[str, Any]) -> Recommendation:
    """One of ``InferenceRecommendations``."""
    metrics = answer.get("Metrics") or {}
    endpoint = answer["EndpointConfiguration"]
    model = answer["ModelConfiguration"]
    most = metrics.get("MaxInvocations")
    return Recommendation(
        number=number,
        recommendation_id=answer.get("RecommendationId", ""),
        instance_type=endpoint.get("InstanceType", ""),
        instance_count=endpoint.get("InitialInstanceCount"),
        cost_per_hour_usd=_known(metrics.get("CostPerHour")),
        cost_per_inference_usd=_known(metrics.get("CostPerInference")),
        max_invocations_per_minute=most,
        model_latency_ms=model_latency_ms(metrics.get("ModelLatency"), most),
        cpu_percent=_known(metrics.get("CpuUtilization")),
        memory_percent=_known(metrics.get("MemoryUtilization")),
        environment={
            each["Key"]: each["Value"] for each in model.get("EnvironmentParameters") or ()
        },
        inference_specification=model.get("InferenceSpecificationName", ""),
        compilation_job=model.get("CompilationJobName", ""),
    )


def model_latency_ms(value: int | None, max_invocations: int | None) -> float | None:
    """Milliseconds from ``ModelLatency``, whose unit AWS states in two ways.

    As milliseconds, unless that would need more than 500 requests in flight (rate times latency),
    which the recommender's few users cannot have: then as microseconds.

    Examples
    --------
    AWS's own example, which makes sense as microseconds (2.8 in flight), and a recorded answer in
    milliseconds (4.7 in flight):

    >>> model_latency_ms(263596, 648)
    263.596
    >>> model_latency_ms(171, 1645)
    171.0
    """
    if value is None:
        return None
    in_flight = (max_invocations or 0) / 60 * value / 1000
    # Without a rate: nothing that SageMaker answers in real time takes more than eight minutes.
    micro = in_flight > _MOST_IN_FLIGHT or value > 480_000
    return value / 1000 if micro else float(value)


def _known(value: float | None) -> float | None:
    """AWS writes NaN where it has no value."""
    return None if value is None or math.isnan(value) else value


@dataclass(frozen=True, slots=True)
class OptimizedModel:
    """One recommendation; empty text and ``None`` where AWS gives no value.

    Attributes
    ----------
    number : int
        Its place in the answer, from 1.
    environment : mapping of str to str
        The container's environment variables.
    model_data : mapping of str to str
        Channel to the prefix in S3.
    optimizations : tuple of str
        What AWS did to the model.
    performance : tuple of str
        Expected metrics in words, such as ``throughput average 512.0 tokens/second``.
    """

    number: int
    description: str
    instance_type: str
    image: str
    instance_count: int | None
    copies_per_instance: int | None
    environment: Mapping[str, str]
    model_data: Mapping[str, str]
    model_package_arn: str
    optimizations: tuple[str, ...]
    performance: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return _filled(asdict(self))


def _filled(values: dict[str, Any]) -> dict[str, Any]:
    """JSON's null for empty text, its lists for tuples."""
    return {
        name: list(value) if isinstance(value, tuple) else None if value == "" else value
        for name, value in values.items()
    }


def optimized_model(number: int, answer: Mapping[str, Any]) -> OptimizedModel:
    """A completed optimization job as a result: what it wrote, and how that is served.

    Environment of the container is what the job was given for the model and for its techniques,
    as AWS's own client has it (sagemaker-python-sdk, ``ModelBuilder.optimize``).
    """
    techniques = [pair for each in answer["OptimizationConfigs"] for pair in each.items()]
    environment = dict(answer.get("OptimizationEnvironment") or {})
    for _, stated in techniques:
        environment |= stated.get("OverrideEnvironment") or {}
    return OptimizedModel(
        number=number,
        description="",
        instance_type=answer["DeploymentInstanceType"],
        image=(answer.get("OptimizationOutput") or {}).get("RecommendedInferenceImage", ""),
        instance_count=None,
        copies_per_instance=None,
        environment=environment,
        model_data={"model": answer["OutputConfig"]["S3OutputLocation"].rstrip("/") + "/"},
        model_package_arn="",
        optimizations=tuple(
            name.removeprefix("Model").removesuffix("Config") for name, _ in techniques
        ),
        performance=(),
    )
