"""What SageMaker publishes to CloudWatch, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aws_cdk import Duration

from ..plan.argument_kinds import checked_arguments
from ..plan.limits import METRIC_FREQUENCY
from ..synthesis.validation import check_seconds


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class MetricsPublishing:
    """How often and how finely SageMaker publishes metrics.

    Args:
        enhanced: Invocation metrics at ``frequency`` too, and per instance, container and accelerator: more metrics, billed as such. By default off: invocation metrics each minute.
        detailed_observability: OpenTelemetry metrics, which CloudWatch bills by the GB; by default SageMaker's own default, on.
        frequency: 10, 30, 60, 120, 180, 240 or 300 seconds; by default 60.
    """

    enhanced: bool = False
    detailed_observability: bool | None = None
    frequency: Duration | None = None


def metrics_property(metrics: MetricsPublishing, where: str) -> dict[str, Any]:
    """As CloudFormation has it: older releases of aws-cdk-lib do not know it."""
    stated = {
        "EnableEnhancedMetrics": metrics.enhanced,
        "EnableDetailedObservability": metrics.detailed_observability,
        "MetricPublishFrequencyInSeconds": check_seconds(
            METRIC_FREQUENCY, metrics.frequency, where
        ),
    }
    return {name: value for name, value in stated.items() if value is not None}
