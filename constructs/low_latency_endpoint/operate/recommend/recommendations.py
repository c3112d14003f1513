"""What Inference Recommender answers: read, shown, and adopted into the settings file.

**The unit of ModelLatency.** AWS contradicts itself: the results' page says milliseconds, the page
on how to get them says microseconds in one tab and milliseconds in the other, over the same
example of 263596 at 648 requests per minute. Little's law tells the two apart, for they differ by
a thousand: rate times latency is the number of requests in flight, and the recommender sends with
a few users. See :func:`model_latency_ms`.

Source: https://docs.aws.amazon.com/sagemaker/latest/dg/inference-recommender-interpret-results.html
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...account.sessions import ClientFactory
from ...errors.findings import Place
from ...report.document import Cell, Document, Listed, Table
from ...report.numbers import milliseconds, readable
from ...settings import EndpointSettings, environment_place
from .inference_requests import LatencyThreshold
from .jobs import NO_SUCH_RESULT, NOT_ADOPTABLE, Adoption, Job, job_errors_in_words, type_change

# The recommender's users call one after another: an hour's phase ends with 183 of them at most, and
# less than half a request in flight on average would mean that it hardly sent any.
_MOST_IN_FLIGHT = 500.0
MOST_INVOCATIONS = 0.98 * 30_000  # requests per minute at which AWS's tests end, or nearly so


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One result of a job; ``None`` where AWS gave no value."""

    number: int  # its place in the answer, from 1
    recommendation_id: str  # empty for an endpoint that existed before
    instance_type: str  # empty for a serverless endpoint
    instance_count: int | None
    cost_per_hour_usd: float | None
    cost_per_inference_usd: float | None
    max_invocations_per_minute: int | None  # that one instance held, and what follows at that rate
    model_latency_ms: float | None
    cpu_percent: float | None
    memory_percent: float | None
    environment: Mapping[str, str]  # that this result is for
    inference_specification: str  # a variant of the model package, where it is one
    compilation_job: str  # of a model compiled by Neo

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
        return {
            **{name: None if value == "" else value for name, value in asdict(self).items()},
            "tps_per_instance": self.tps_per_instance,
            "within_target": self.within(threshold),
        }


def recommendations(job: Job) -> list[Recommendation]:
    """The results of a job, in AWS's order; none before it is complete."""
    found = job.answer.get("InferenceRecommendations") or ()
    return [_recommendation(number, each) for number, each in enumerate(found, start=1)]


def _recommendation(number: int, answer: Mapping[str, Any]) -> Recommendation:
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
            parameter["Key"]: parameter["Value"]
            for parameter in model.get("EnvironmentParameters") or ()
        },
        inference_specification=model.get("InferenceSpecificationName", ""),
        compilation_job=model.get("CompilationJobName", ""),
    )


def model_latency_ms(value: int | None, max_invocations: int | None) -> float | None:
    """Milliseconds from ``ModelLatency``, whose unit AWS states in two ways.

    As milliseconds, unless that would need more than 500 requests in flight (rate times latency),
    which the recommender's few users cannot have: then as microseconds.

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


def stopping_threshold(job: Job) -> LatencyThreshold | None:
    """At which threshold AWS stopped the tests of a job."""
    for stated in job.answer.get("StoppingConditions", {}).get("ModelLatencyThresholds") or ():
        if stated.get("ValueInMilliseconds"):
            return LatencyThreshold(stated.get("Percentile", "P95"), stated["ValueInMilliseconds"])
    return None


def adopt(
    recommendation: Recommendation,
    threshold: LatencyThreshold,
    key: str,
    endpoint: EndpointSettings,
) -> Adoption:
    """Type, throughput and environment of a result; LLR109 if too slow, serverless or Neo's."""
    result = f"result {recommendation.number}"
    if not recommendation.instance_type:
        raise NOT_ADOPTABLE.error(got=f"{result} is serverless", allowed="an instance type")
    if recommendation.compilation_job:
        raise NOT_ADOPTABLE.error(
            got=f"{result} belongs to the model compiled by {recommendation.compilation_job}",
            allowed="a result of the model as it is",
            fix="Point the settings' model data at the compiled model first.",
        )
    if recommendation.within(threshold) is False:
        raise NOT_ADOPTABLE.error(
            got=f"{result} with {milliseconds(recommendation.model_latency_ms, 6)}",
            allowed=f"at most {threshold.milliseconds} ms",
        )
    if recommendation.environment and len(endpoint.containers) > 1:
        raise NOT_ADOPTABLE.error(
            got=f"{result} with environment variables, and {len(endpoint.containers)} containers",
            allowed="one container, which gets the variables",
        )
    here: Place = ("endpoints", key)
    values: dict[Place, Any] = {(*here, "instance_type"): recommendation.instance_type}
    for name, value in recommendation.environment.items():
        values[(*here, *environment_place(endpoint), name)] = value
    held = recommendation.tps_per_instance
    if endpoint.throughput is not None and held is not None:
        values[(*here, "throughput", "tps_per_instance")] = round(held, 2)
    notes = [*_throughput_notes(recommendation, endpoint)]
    return Adoption(values, notes + type_change(endpoint, recommendation.instance_type))


def _throughput_notes(result: Recommendation, endpoint: EndpointSettings) -> Iterator[str]:
    held = result.tps_per_instance
    if endpoint.throughput is None:
        yield "The settings state no throughput, so the fleet is not sized from the result." + (
            f" One instance held {readable(held, 4)} requests per second." if held else ""
        )
    elif held is None:
        yield (
            "The result has no rate: throughput.tps_per_instance is still the old "
            "type's. Measure it with low-latency load-test."
        )
    else:
        yield (
            "tps_per_instance is AWS's figure with its own few users; confirm it with "
            "low-latency load-test --confirm before production relies on it."
        )
        if (result.max_invocations_per_minute or 0) >= MOST_INVOCATIONS:
            yield "AWS's tests end at 500 requests per second: the instance may hold more."


def job_document(
    job: Job, results: Sequence[Recommendation], threshold: LatencyThreshold, current: str
) -> Document:
    """The results, those within the target marked."""
    if not results:
        return job.document()
    heads = ["#", "Within target", "Instance type", "N", "USD per hour", "USD per million"]
    heads += ["Calls per s", "Model ms", "CPU %", "Mem. %"]
    rows = [list(_row(result, threshold, current)) for result in results]
    notes = [
        f"{result.number}: {name}={value}"
        for result in results
        for name, value in result.environment.items()
    ]
    notes.append(
        f"Target: {threshold.milliseconds} ms, compared with the model's time; calls per second of "
        "one instance, from Inference Recommender's few users."
    )
    ended = stopping_threshold(job)
    if ended and ended.milliseconds != threshold.milliseconds:
        notes.append(
            f"The job's tests ended at {ended.percentile.lower()} {ended.milliseconds} ms."
        )
    table = Table(heads, rows, align="rllr", tight=True)
    return job.document(table, Listed(notes, "soft"))


def _row(
    recommendation: Recommendation, threshold: LatencyThreshold, current: str
) -> Iterator[str | Cell]:
    tones = {None: Cell("?", "other"), True: Cell("yes", "good"), False: Cell("no", "bad")}
    millions = (
        None
        if recommendation.cost_per_inference_usd is None
        else recommendation.cost_per_inference_usd * 1e6
    )
    yield str(recommendation.number)
    yield tones[recommendation.within(threshold)]
    yield (recommendation.instance_type or "serverless") + " (now)" * (
        recommendation.instance_type == current
    )
    for value, form in (
        (recommendation.instance_count, "d"),
        (recommendation.cost_per_hour_usd, ".3f"),
        (millions, ".2f"),
        (recommendation.tps_per_instance, ".1f"),
        (recommendation.model_latency_ms, ".4g"),
        (recommendation.cpu_percent, ".0f"),
        (recommendation.memory_percent, ".0f"),
    ):
        yield "-" if value is None else format(value, form)


def ask_for_scaling(
    client: ClientFactory, job: Job, recommendation: Recommendation, peak_tps: float | None
) -> dict[str, Any]:
    """AWS's scaling, in its form, for a result at ``peak_tps``; LLR108 without an ID."""
    if not recommendation.recommendation_id:
        raise NO_SUCH_RESULT.error(
            got=f"result {recommendation.number} without an ID",
            allowed="a result that AWS recommends",
        )
    request: dict[str, Any] = {
        "InferenceRecommendationsJobName": job.name,
        "RecommendationId": recommendation.recommendation_id,
    }
    if peak_tps is not None:
        most = max(round(peak_tps * 60), 1)
        request["ScalingPolicyObjective"] = {"MaxInvocationsPerMinute": most}
    with job_errors_in_words(job.name):
        answer = client("sagemaker").get_scaling_configuration_recommendation(**request)
    return dict(answer.get("DynamicScalingConfiguration") or {})
