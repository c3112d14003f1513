"""Alarms on latency, errors, saturation and silence, and composite alarms that page for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from aws_cdk import CfnResource, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ..facts.instance_types import instance_facts
from ..facts.limit_kinds import check_known
from ..facts.limits import PEAK_TPS
from ..facts.rules import SCALED_VARIANTS_ONLY, has_objectives
from ..facts.token_values import is_token
from ..hosting.endpoint import Endpoint
from ..hosting.endpoint_interface import IEndpoint
from ..hosting.endpoint_metrics import EndpointVariant, checked_period
from ..options.alarms import AlarmOptions
from ..options.argument_kinds import checked_arguments
from ..plan.plan_warnings import NOBODY_NOTIFIED, no_objectives_in
from ..synthesis.annotations import warn, warn_of_unknown_type
from ..synthesis.construct_tree import alarm_name_of, path_below, region_of, stack_of
from ..synthesis.stack_limits import StackLimits
from .alarm_specifications import AlarmSpecification, DescribedAlarm, notify, specifications

if TYPE_CHECKING:
    from aws_cdk.aws_applicationsignals import CfnServiceLevelObjective

# A deployment shows in CloudWatch as a minute in which both fleets take requests: the series with
# EndpointConfigName starts with the new fleet's traffic and lasts for good (SageMaker guide,
# "Auto-Rollback Configuration and Monitoring"), so alone it says nothing; whether it exists from
# the first create is not documented. That the whole endpoint's series has both fleets is (same
# page); that both series agree to the minute is not. FILL, since one may be missing or late at the
# edges: a hole counts as zero, which holds nothing back.
_BOTH_FLEETS = "IF((FILL(new, 0) > 0) AND (FILL(whole, 0) > FILL(new, 0)), 1, 0)"

# After such a minute pages are held back for ten more. That is the suppressor's own time: any
# change of the composite would end an extension, and CloudWatch wants one besides. The wait is as
# short as it can be, since a composite that is on for less than the wait pages nobody.
_QUIET_AFTER_MINUTES = 10
_EXTENSION_MINUTES = 1
_WAIT_MINUTES = 1

# And they are held back no longer than this, whatever the series do (if the two never agree, every
# minute looks like a deployment). One such minute covers at most 12: ten, the extension, and one
# for alarms that are not judged at the same second. "Too long" is on when a variant had at least
# M = N / (12 x variants) of them in the last N minutes. As long as it is off, the fewer than
# M x variants minutes cannot have covered the last N, so there was a moment in which whatever was
# held back was done; as long as it is on, nothing is held back. So a page comes after N minutes at
# the latest (12 hours; a day, all that CloudWatch allows, with several variants), after M of
# them (an hour with one variant) when both fleets take requests all the time. Each update starts
# anew, with its own configuration's series; until its new fleet has started nothing is held back.
_COVERED_MINUTES = _QUIET_AFTER_MINUTES + _EXTENSION_MINUTES + 1
_RANGE_MINUTES = 60 * _COVERED_MINUTES
_LONGEST_RANGE_MINUTES = 24 * 60


@checked_arguments
class LatencyAlarms(Construct):
    """Alarms of every variant of an endpoint, and one composite alarm that pages.

    SageMaker publishes latencies in microseconds; thresholds are durations, converted here.
    Missing data never alarms, except where silence is the fault. Every description says what the
    alarm means, what to look at first, and the command to run.

    A variant with several instance pools has alarms on utilization and on ModelLatency as a whole,
    and beside them for each instance type, which has vCPUs and GPUs of its own. The whole is held
    against the smallest type. Whether CloudWatch has series by type was not seen on AWS.

    A shadow variant has none of them: callers see nothing of it, so it pages nobody and rolls no
    deployment back. :class:`ShadowAlarms` compare it with production.

    Attributes
    ----------
    alarms : dict of str to aws_cloudwatch.Alarm
        By ``<variant>/<metric>/<statistic>``, for example ``primary/ModelLatency/p99``; those of
        one type of several instance pools by ``.../<instance type>``.
    objectives : dict of str to aws_applicationsignals.CfnServiceLevelObjective
        By variant; with ``service_level_objective``, but not for a new fleet alone.
    composites : dict of str to aws_cloudwatch.CompositeAlarm
        By severity; ``""`` for alarms without one.
    actions_suppressor : aws_cloudwatch.IAlarm or None
        What holds pages back with ``quiet_during_deployments``.
    options : AlarmOptions
        The stated ones.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: IEndpoint,
        options: AlarmOptions | None = None,
        peak_tps: Mapping[str, float] | None = None,
        quiet_tps: Mapping[str, float] | None = None,
        new_fleet_only: bool = False,
    ) -> None:
        """Alarms of every variant of an endpoint, and one composite alarm that pages.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            endpoint: An :class:`Endpoint`, or one imported with its variants.
            options: What to watch, and who is told; ``"planned"`` watches nothing here, where no plan is. By default ``AlarmOptions()``.
            peak_tps: Highest requests per second by variant. Alarms on latencies and errors then take periods with enough of them. By default, and for other variants, a minute.
            quiet_tps: Requests per second by variant in the quietest time, in which ``expect_traffic`` must not take a pause for an outage. By default ``peak_tps``.
            new_fleet_only: Watch only the fleet of this configuration (dimension ``EndpointConfigName``), which a deployment brings up: for rollback alarms, which the old fleet would drown. No composite alarm and none of ``options.anomalies`` then. By default the whole endpoint is watched.

        Raises:
            ConfigurationError: LLE606 and LLE825 for a rate, LLE631 for an endpoint imported without variants, LLE721 to LLE729
                for what it does not publish, LLE739 for an objective without threshold, LLE801 and LLE807 for arguments of another kind.
        """
        super().__init__(scope, id)
        self._endpoint = endpoint
        self.options = options = options or AlarmOptions()
        self._path = path_below(self, scope, id)
        self._periods = options.evaluation_periods, options.datapoints_to_alarm
        self._new_fleet = new_fleet_only
        self._peak_tps = peak_tps or {}
        self._quiet_tps = {**self._peak_tps, **(quiet_tps or {})}
        for rate in self._peak_tps.values():
            check_known(PEAK_TPS, rate, f"{self._path}, peak_tps")
        for rate in (quiet_tps or {}).values():
            check_known(PEAK_TPS, rate, f"{self._path}, quiet_tps")
        self.alarms: dict[str, cloudwatch.Alarm] = {}
        self.composites: dict[str, cloudwatch.CompositeAlarm] = {}
        self.actions_suppressor: cloudwatch.IAlarm | None = None
        rules: dict[str, list[str]] = {}
        for described in endpoint.known_variants():
            variant = endpoint.variant_in(self, described.name)
            groups: dict[str, list[str]] = {}
            for specification in specifications(
                variant,
                options,
                new_fleet=new_fleet_only,
                max_instances=self._max_instances(variant),
                peak_tps=self._peak_tps.get(variant.name),
                quiet_tps=self._quiet_tps.get(variant.name),
                where=self._path,
            ):
                alarm = self._alarm(variant, specification)
                if new_fleet_only:  # no composite
                    continue
                rule = is_on(alarm)
                if specification.group:
                    groups.setdefault(specification.group, []).append(rule)
                else:
                    rules.setdefault(specification.severity, []).append(rule)
            for group in groups.values():
                rules.setdefault("", []).append(_all_of(group))
            # Of a fleet that has just come, CloudWatch has learnt no band.
            for name, statistic in () if new_fleet_only else options.anomalies.items():
                anomaly = self._anomaly(variant, name, statistic)
                rules.setdefault("", []).append(is_on(anomaly))
        self.objectives = self._objectives(options.service_level_objective)
        if options.quiet_during_deployments and not new_fleet_only:
            self.actions_suppressor = self._suppressor()
        if rules and not new_fleet_only:
            self._compose(rules)

    def _objectives(self, share: float | None) -> dict[str, CfnServiceLevelObjective]:
        if share is None or self._new_fleet:
            return {}
        if not has_objectives(region_of(self)):
            text = no_objectives_in(region_of(self))
            warn(self, "noServiceLevelObjective", f"{text[0].upper()}{text[1:]}.")
            return {}
        from .objectives import service_level_objective  # few endpoints have one

        return {
            variant.name: service_level_objective(
                self,
                self._endpoint.variant_in(self, variant.name),
                self.options,
                share=share,
                peak_tps=self._peak_tps.get(variant.name),
                endpoint_name=self._endpoint.name_in(self),
                where=self._path,
            )
            for variant in self._endpoint.known_variants()
        }

    def _max_instances(self, variant: EndpointVariant) -> int | None:
        if not self.options.capacity_at_maximum:
            return None
        scaling = self._endpoint.scaling_of(variant.name)
        if scaling is None:
            if self.options.capacity_at_maximum == "scaled":
                return None
            raise SCALED_VARIANTS_ONLY.error(
                got=f"{variant.name}, which does not scale",
                allowed="a scaled variant",
                where=self._path,
            )
        return scaling.highest_maximum

    def _alarm(
        self, variant: EndpointVariant, specification: AlarmSpecification
    ) -> cloudwatch.Alarm:
        types = [each.name for each in variant.attributes.instance_types]
        new = [name for name in types if not is_token(name) and instance_facts(name) is None]
        for name in new if specification.unknown else ():
            warn_of_unknown_type(self, name)
        for metric in () if new else specification.unknown:
            warn(
                self,
                f"unknownInstanceType:{metric}",
                f"{metric}: the instance type is not known, so one vCPU or GPU was assumed.",
            )
        key = f"{variant.name}/{specification.key}"
        text = self._description(variant, specification)
        self.alarms[key] = specification.made(self, key, text, self._periods)
        return self.alarms[key]

    def _anomaly(self, variant: EndpointVariant, name: str, statistic: str) -> cloudwatch.Alarm:
        """What CDK's AnomalyDetectionAlarm makes, which aws-cdk-lib 2.180 does not have."""
        described = DescribedAlarm(
            key=f"{name}/{statistic}/Anomaly",
            when=f"{name} {statistic} leaves the band it usually keeps",
            means="traffic or behaviour is unlike other days",
            look_first="callers' releases and campaigns",
        )
        evaluation_periods, _ = self._periods
        period = checked_period(self.options.period, 60, self._path)
        metric = variant.metric(name, statistic=statistic, period=self.options.period)
        alarm = cloudwatch.Alarm(
            self,
            f"{variant.name}-{described.key.replace('/', '-')}",
            metric=cloudwatch.MathExpression(
                expression="ANOMALY_DETECTION_BAND(m0, 2)",
                using_metrics={"m0": metric},
                period=period,
                label="Anomaly Detection Band",
            ),
            threshold=0,  # for CDK; the band takes its place below
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_LOWER_OR_GREATER_THAN_UPPER_THRESHOLD,
            evaluation_periods=evaluation_periods,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=self._description(variant, described),
        )
        resource = cast(CfnResource, alarm.node.default_child)
        resource.add_property_deletion_override("Threshold")
        resource.add_property_override("ThresholdMetricId", "expr_1")
        for index in (0, 1):  # the band and its metric
            resource.add_property_override(f"Metrics.{index}.ReturnData", True)
        return alarm

    def _description(self, variant: EndpointVariant, described: DescribedAlarm) -> str:
        name = self._endpoint.name_in(self)
        of = f"{'new fleet of ' if self._new_fleet else ''}{name}/{variant.name}"
        return f"{described.text(of)} Run: low-latency diagnose {name}"

    def _compose(self, rules: dict[str, list[str]]) -> None:
        held_back = ""
        if self.actions_suppressor is not None:
            held_back = (
                "Quiet while both fleets of a deployment take requests and "
                f"{_QUIET_AFTER_MINUTES} minutes after, for {self._too_long()[0]} such minutes at "
                "most. "
            )
        self.composites = paging_alarms(
            self,
            rules,
            endpoint_name=self._endpoint.name_in(self),
            says=f"one or more of its alarms are on. {held_back}",
            actions=self.options.actions,
            suppressor=self.actions_suppressor,
        )
        if len(self.composites) == 1:
            (composite,) = self.composites.values()
            self.node.default_child = composite.node.default_child

    def _too_long(self) -> tuple[int, int]:
        """Of how many minutes so many with both fleets are too long: M and N; see above."""
        variants = len(self._endpoint.known_variants())
        minutes = min(_RANGE_MINUTES * variants, _LONGEST_RANGE_MINUTES)
        return minutes // (_COVERED_MINUTES * variants), minutes

    def _suppressor(self) -> cloudwatch.IAlarm:
        """In alarm while a deployment is under way or just over, and not for too long."""
        deploying, too_long = [], []
        for described in self._endpoint.known_variants():
            variant = self._endpoint.variant_in(self, described.name)
            deploying.append(
                self._both_fleets(
                    variant,
                    "Deploying",
                    1,
                    _QUIET_AFTER_MINUTES,
                    "both fleets of a deployment take requests. Holds pages back",
                )
            )
            too_long.append(
                self._both_fleets(
                    variant,
                    "DeployingTooLong",
                    *self._too_long(),
                    "both fleets of a deployment have taken requests for too long. Pages are no "
                    "longer held back",
                )
            )
        return _composite_alarm(
            self,
            "Quiet",
            rule=_all_of([_any_of(deploying), f"(NOT ({_any_of(too_long)}))"]),
            description=f"{self._endpoint.name_in(self)}: deploying, pages are held back",
        )

    def _both_fleets(
        self, variant: EndpointVariant, name: str, datapoints: int, minutes: int, means: str
    ) -> str:
        alarm = cloudwatch.Alarm(
            self,
            f"{variant.name}-{name}",
            metric=cloudwatch.MathExpression(
                expression=_BOTH_FLEETS,
                using_metrics={
                    "new": variant.metric_invocations("Sum", fleet="new"),
                    "whole": variant.metric_invocations("Sum"),
                },
                period=Duration.minutes(1),
                label="both fleets take requests",
            ),
            threshold=0,
            evaluation_periods=minutes,
            datapoints_to_alarm=datapoints,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=f"{self._endpoint.name_in(self)}/{variant.name}: {means}.",
        )
        endpoint = self._endpoint
        if (
            isinstance(endpoint, Endpoint)
            and stack_of(self).node.addr == stack_of(endpoint).node.addr
        ):
            # An update points it at the new configuration before that takes requests.
            endpoint.cfn_endpoint.node.add_dependency(alarm)
        return is_on(alarm)


def paging_alarms(
    scope: Construct,
    rules: Mapping[str, Sequence[str]],
    *,
    endpoint_name: str,
    says: str,
    actions: Sequence[cloudwatch.IAlarmAction],
    suppressor: cloudwatch.IAlarm | None,
) -> dict[str, cloudwatch.CompositeAlarm]:
    """A composite alarm for each severity, which pages unless the suppressor holds it back."""
    if not actions:
        warn(
            scope,
            "alarmsNotifyNobody",
            f"{NOBODY_NOTIFIED[0].upper()}{NOBODY_NOTIFIED[1:]}; "
            "acknowledge this warning if you add actions to .composites later.",
        )
    suppression: dict[str, Any] = {}
    if suppressor is not None:
        suppression = {
            "actions_suppressor": suppressor,
            "actions_suppressor_wait_period": Duration.minutes(_WAIT_MINUTES),
            "actions_suppressor_extension_period": Duration.minutes(_EXTENSION_MINUTES),
        }
    return {
        severity: _composite_alarm(
            scope,
            f"Composite{severity}",
            rule=_any_of(parts),
            description=f"{endpoint_name}{f', {severity}' if severity else ''}: {says}"
            f"Run: low-latency diagnose {endpoint_name}",
            actions=actions,
            suppression=suppression,
        )
        for severity, parts in rules.items()
    }


def is_on(alarm: cloudwatch.IAlarm) -> str:
    """That an alarm is on; by its name, which is shorter than its ARN."""
    return f'ALARM("{alarm_name_of(alarm)}")'


def _any_of(rules: Sequence[str]) -> str:
    """That one of these is true."""
    return f"({' OR '.join(rules)})"


def _all_of(rules: Sequence[str]) -> str:
    """That all of these are true."""
    return f"({' AND '.join(rules)})"


def _composite_alarm(
    scope: Construct,
    id: str,
    *,
    rule: str,
    description: str,
    actions: Sequence[cloudwatch.IAlarmAction] = (),
    suppression: Mapping[str, Any] | None = None,
) -> cloudwatch.CompositeAlarm:
    """A composite alarm whose name CloudFormation makes: CDK's own is of the path alone."""
    composite = cloudwatch.CompositeAlarm(
        scope,
        id,
        alarm_rule=cloudwatch.AlarmRule.from_string(rule),
        alarm_description=description,
        **(suppression or {}),
    )
    cast(CfnResource, composite.node.default_child).add_property_deletion_override("AlarmName")
    notify(composite, actions)
    StackLimits.hold(scope)
    return composite
