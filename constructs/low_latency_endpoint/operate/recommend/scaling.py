"""AWS's recommendation of a scaling policy, which needs a completed job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...account.sessions import ClientFactory
from .adopting import NO_SUCH_RESULT
from .jobs import Job, job_errors_in_words
from .results import Recommendation


@dataclass(frozen=True, slots=True)
class ScalingAdvice:
    """What AWS recommends; ``None`` where it leaves a value out.

    Attributes
    ----------
    min_instances, max_instances : int or None
    scale_in_cooldown, scale_out_cooldown : int or None
        Seconds.
    targets : tuple of (str, float)
        Metric and target value of each target-tracking policy.
    """

    min_instances: int | None
    max_instances: int | None
    scale_in_cooldown: int | None
    scale_out_cooldown: int | None
    targets: tuple[tuple[str, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "min_instances": self.min_instances,
            "max_instances": self.max_instances,
            "scale_in_cooldown_seconds": self.scale_in_cooldown,
            "scale_out_cooldown_seconds": self.scale_out_cooldown,
            "targets": [{"metric": metric, "value": value} for metric, value in self.targets],
        }


def ask_for_scaling(
    client: ClientFactory,
    job: Job[Recommendation],
    recommendation: Recommendation,
    peak_tps: float | None,
) -> ScalingAdvice:
    """Ask AWS for the scaling of one result of a completed job.

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
    return ScalingAdvice(
        found.get("MinCapacity"),
        found.get("MaxCapacity"),
        found.get("ScaleInCooldown"),
        found.get("ScaleOutCooldown"),
        tuple(
            _target(policy["TargetTracking"])
            for policy in found.get("ScalingPolicies") or ()
            if policy.get("TargetTracking", {}).get("TargetValue") is not None
        ),
    )


def _target(tracking: Mapping[str, Any]) -> tuple[str, float]:
    specification = tracking.get("MetricSpecification") or {}
    metric = (
        specification.get("Predefined", {}).get("PredefinedMetricType")
        or specification.get("Customized", {}).get("MetricName")
        or "a metric"
    )
    return str(metric), float(tracking["TargetValue"])
