"""From a result to values in the settings file, and to AWS's scaling policy for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...account.sessions import ClientFactory
from ...errors import rule
from ...settings import EndpointSettings, environment_place
from ...settings.breach import Place
from .jobs import Job, R, job_errors_in_words
from .results import Recommendation
from .threshold import LatencyThreshold

NO_SUCH_RESULT = rule(
    "LLR108",
    "the job has no such result",
    fix="Choose a number from low-latency recommend SETTINGS --job NAME. Only a completed job "
    "has results.",
)
NOT_ADOPTABLE = rule(
    "LLR109",
    "the result cannot be written into the settings",
    fix="Choose another, or change the settings by hand.",
)
MOST_INVOCATIONS = 0.98 * 30_000  # requests per minute at which AWS's tests end, or nearly so


@dataclass(frozen=True, slots=True)
class Adoption:
    """Values for places of the settings file, and what to know before they are written."""

    values: dict[Place, Any]
    notes: tuple[str, ...]


def chosen(job: Job[R], number: int) -> R:
    """The result of that number.

    Raises
    ------
    ConfigurationError
        LLR108 when the job is not complete or has no such result.
    """
    if not job.succeeded:
        raise NO_SUCH_RESULT.error(
            got=f"job {job.name} is {job.status}", allowed="a job that is complete"
        )
    if not 1 <= number <= len(job.results):
        raise NO_SUCH_RESULT.error(
            got=str(number),
            allowed=f"1 to {len(job.results)}" if job.results else "none: the job has no results",
        )
    return job.results[number - 1]


def adopt(
    recommendation: Recommendation,
    threshold: LatencyThreshold,
    key: str,
    endpoint: EndpointSettings,
) -> Adoption:
    """What a result changes in the settings of an endpoint.

    The instance type and, where the settings state a throughput, what one instance held: the old
    number was another type's. Environment variables of the result go to the container.

    Raises
    ------
    ConfigurationError
        LLR109 for a result that is beyond the latency target, serverless, or of a model compiled
        by Neo.
    """
    result = f"result {recommendation.number}"
    if not recommendation.instance_type:
        raise NOT_ADOPTABLE.error(got=f"{result} is serverless", allowed="an instance type")
    if recommendation.compilation_job:
        raise NOT_ADOPTABLE.error(
            got=f"{result} is of the model compiled by {recommendation.compilation_job}",
            allowed="a result of the model as it is",
            fix="Point the settings' model data at the compiled model first.",
        )
    if recommendation.within(threshold) is False:
        raise NOT_ADOPTABLE.error(
            got=f"{result} with {recommendation.model_latency_ms:g} ms",
            allowed=f"at most {threshold.milliseconds} ms",
        )
    if recommendation.environment and len(endpoint.containers) > 1:
        raise NOT_ADOPTABLE.error(
            got=f"{result} with environment variables, and {len(endpoint.containers)} containers",
            allowed="one container, whose they are",
        )
    here: Place = ("endpoints", key)
    values: dict[Place, Any] = {(*here, "instance_type"): recommendation.instance_type}
    for name, value in recommendation.environment.items():
        values[(*here, *environment_place(endpoint), name)] = value
    notes = []
    held = recommendation.tps_per_instance
    if endpoint.throughput is None:
        notes.append(
            "The settings state no throughput, so the fleet is not sized from the result."
            + (f" One instance held {held:.4g} requests per second." if held else "")
        )
    elif held is None:
        notes.append(
            "The result has no rate: throughput.tps_per_instance is still the old "
            "type's. Measure it with low-latency load-test."
        )
    else:
        values[(*here, "throughput", "tps_per_instance")] = round(held, 2)
        notes.append(
            "tps_per_instance is AWS's figure with its own few users; confirm it with "
            "low-latency load-test --confirm before production relies on it."
        )
        if (recommendation.max_invocations_per_minute or 0) >= MOST_INVOCATIONS:
            notes.append("AWS's tests end at 500 requests per second: the instance may hold more.")
    notes += type_change(endpoint, recommendation.instance_type)
    return Adoption(values, tuple(notes))


def type_change(endpoint: EndpointSettings, after: str) -> Iterator[str]:
    """Why a new instance type takes two deploys, where the variant is a scalable target."""
    before = endpoint.instance_type
    if after != before and endpoint.scaling.enabled and endpoint.throughput is not None:
        yield (
            f"{before} to {after} under scaling takes two deploys: SageMaker refuses to change the "
            "instance type of a scalable target. Deploy with scaling: {enabled: false, "
            "keep_counts: true} first, then the new type with scaling on again (docs/explanation/updates.md)."
        )


def ask_for_scaling(
    client: ClientFactory,
    job: Job[Recommendation],
    recommendation: Recommendation,
    peak_tps: float | None,
) -> dict[str, Any]:
    """AWS's scaling for one result of a completed job; ``None`` where it leaves a value out.

    Parameters
    ----------
    client : callable
    job : Job
    recommendation : Recommendation
    peak_tps : float or None
        Requests per second to hold; ``None`` leaves the traffic open.

    Raises
    ------
    ConfigurationError
        LLR108 for a result without an ID of its own.
    """
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
        request["ScalingPolicyObjective"] = {
            "MaxInvocationsPerMinute": max(round(peak_tps * 60), 1)
        }
    with job_errors_in_words(job.name):
        answer = client("sagemaker").get_scaling_configuration_recommendation(**request)
    found: Mapping[str, Any] = answer.get("DynamicScalingConfiguration") or {}
    return {
        "min_instances": found.get("MinCapacity"),
        "max_instances": found.get("MaxCapacity"),
        "scale_in_cooldown_seconds": found.get("ScaleInCooldown"),
        "scale_out_cooldown_seconds": found.get("ScaleOutCooldown"),
        "targets": [
            _target(policy["TargetTracking"])
            for policy in found.get("ScalingPolicies") or ()
            if policy.get("TargetTracking", {}).get("TargetValue") is not None
        ],
    }


def _target(tracking: Mapping[str, Any]) -> dict[str, Any]:
    specification = tracking.get("MetricSpecification") or {}
    metric = (
        specification.get("Predefined", {}).get("PredefinedMetricType")
        or specification.get("Customized", {}).get("MetricName")
        or "a metric"
    )
    return {"metric": metric, "value": tracking["TargetValue"]}
