"""What SageMaker publishes to CloudWatch, and how often."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from ..errors.frozen import dataclass
from ..facts.limits import METRIC_FREQUENCY
from .argument_kinds import checked_arguments
from .option import Lasting, Option, Options


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class MetricsPublishing(Options):
    """What SageMaker publishes to CloudWatch.

    Args:
        enhanced: Publish per instance and container, at the frequency below; more billed metrics. Default: false.
        detailed_observability: Publish OpenTelemetry metrics for PromQL, which CloudWatch bills by the GB. Default: true.
        publish_frequency: How often utilization (with enhanced: invocations too) is published. Default: 60s.

    Raises:
        ConfigurationError: LLE417 for another frequency, LLE801 and LLE807 for values of another kind.
    """

    enhanced: Annotated[bool, Option()] = False
    detailed_observability: Annotated[bool, Option()] = True
    publish_frequency: Annotated[Lasting, Option(METRIC_FREQUENCY, "10s")] = timedelta(seconds=60)
