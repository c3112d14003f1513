"""Service level objectives of Application Signals on the latency that the alarms watch."""

from __future__ import annotations

from datetime import timedelta

from aws_cdk.aws_applicationsignals import CfnServiceLevelObjective
from constructs import Construct

from ..facts.metrics import microseconds_from_milliseconds
from ..facts.rules import NOTHING_TO_MEET
from ..hosting.endpoint_metrics import EndpointVariant
from ..options.alarms import BURN_RATES, AlarmOptions, tightest
from ..plan.period_objectives import objective_seconds
from ..synthesis.launched_names import launched_name_of

_DAYS = 28  # four whole weeks: each has as many weekends


def service_level_objective(
    scope: Construct,
    variant: EndpointVariant,
    options: AlarmOptions,
    *,
    share: float,
    peak_tps: float | None,
    endpoint_name: str,
    where: str,
) -> CfnServiceLevelObjective:
    """The objective that this share of the periods meets the tightest threshold.

    Creating one makes the role AWSServiceRoleForCloudWatchApplicationSignals where the account
    lacks it (API reference, CreateServiceLevelObjective), so nothing has to be there first.
    """
    threshold = tightest(options.model_latency)
    if threshold is None:
        raise NOTHING_TO_MEET.error(
            got="no threshold of ModelLatency",
            allowed="an objective with model_latency",
            where=where,
        )
    statistic, milliseconds = threshold
    period = objective_seconds(options.window, statistic, peak_tps)
    metric = variant.metric("ModelLatency", statistic=statistic, period=timedelta(seconds=period))
    of = CfnServiceLevelObjective
    return of(
        scope,
        f"{variant.name}-Objective",
        # Unique in account and Region, at most 128 characters: two names of 63.
        name=f"{launched_name_of(scope)}-{variant.name}",
        description=f"{endpoint_name}/{variant.name}: ModelLatency {statistic} is at most "
        f"{milliseconds:g} ms in {share * 100:g} % of the periods of {period} s. "
        f"Run: low-latency diagnose {endpoint_name}",
        sli=of.SliProperty(
            comparison_operator="LessThanOrEqualTo",
            metric_threshold=microseconds_from_milliseconds(milliseconds),
            # The period stands in the query, as in the AWS CLI's example of such an objective.
            sli_metric=of.SliMetricProperty(
                metric_data_queries=[
                    of.MetricDataQueryProperty(
                        id="latency",
                        metric_stat=of.MetricStatProperty(
                            metric=of.MetricProperty(
                                namespace=metric.namespace,
                                metric_name=metric.metric_name,
                                dimensions=[
                                    of.DimensionProperty(name=name, value=value)
                                    for name, value in (metric.dimensions or {}).items()
                                ],
                            ),
                            period=period,
                            stat=statistic,
                        ),
                        return_data=True,
                    )
                ]
            ),
        ),
        goal=of.GoalProperty(
            attainment_goal=round(100 * share, 6),
            interval=of.IntervalProperty(
                rolling_interval=of.RollingIntervalProperty(duration=_DAYS, duration_unit="DAY")
            ),
        ),
        # A window shorter than a period has no rate.
        burn_rate_configurations=[
            of.BurnRateConfigurationProperty(look_back_window_minutes=minutes)
            for minutes in sorted({each for row in BURN_RATES.values() for each in row[:2]})
            if minutes * 60 >= period
        ],
    )
