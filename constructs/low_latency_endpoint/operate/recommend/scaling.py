"""AWS's recommendation of a scaling policy, which needs a completed job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...account.sessions import ClientFactory
from .adopting import NO_SUCH_RESULT
from .jobs import Job, job_errors_in_words
from .results import Recommendation


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
