"""CloudWatch metrics of an endpoint, made from the one table of facts."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from .planning.metrics import check_statistic, metric_facts

__all__ = ["endpoint_metric"]


def endpoint_metric(
    endpoint_name: str,
    variant_name: str,
    name: str,
    *,
    statistic: str,
    period: Duration,
    dimensions: Mapping[str, str] | None = None,
    where: str = "",
) -> cloudwatch.Metric:
    """A metric of one variant, with the namespace AWS publishes it in.

    Latencies are in microseconds, as SageMaker publishes them.

    Raises
    ------
    ConfigurationError
        LLE730 for an unknown metric, LLE731, LLE732 for a statistic it does not have.
    """
    check_statistic(name, statistic, where)
    return cloudwatch.Metric(
        namespace=metric_facts(name).namespace,
        metric_name=name,
        dimensions_map={
            "EndpointName": endpoint_name,
            "VariantName": variant_name,
            **(dimensions or {}),
        },
        statistic=statistic,
        period=period,
    )
