"""A dashboard for whoever is on call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ..facts.limits import ALARM_THRESHOLD_MILLISECONDS
from ..hosting.endpoint_interface import IEndpoint
from ..hosting.endpoint_metrics import EndpointVariant
from ..options.alarms import AlarmOptions, error_share
from ..options.argument_kinds import checked_arguments
from ..options.latency_target import LatencyTarget
from ..synthesis.construct_tree import alarm_arn_of, path_below, stack_of
from ..synthesis.stated_names import claim_name
from ..synthesis.template_values import check_milliseconds, pseudo_parameters
from .alarm_specifications import ERROR_TEXTS
from .alarms import LatencyAlarms
from .dashboard_body import DashboardVariant, PoolType, dashboard_body
from .dashboard_panels import CanaryPanels, TokenPanels

if TYPE_CHECKING:
    from datetime import timedelta

    from aws_cdk import Duration

    from ..facts.instance_types import InstanceFacts


@checked_arguments
class LatencyDashboard(Construct):
    """Target, split of the time, traffic, errors, utilization, instances, models, zones.

    Latencies are in milliseconds, utilization in percent of the whole instance. A shadow variant's
    latency and errors are drawn against production's.

    Attributes
    ----------
    body : dict
        The dashboard's body, as CloudWatch takes it; tokens in it are not resolved.
    cfn_dashboard : aws_cloudwatch.CfnDashboard
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: IEndpoint,
        model_latency: Mapping[
            str, Duration | timedelta | str | Mapping[str, Duration | timedelta | str]
        ]
        | None = None,
        latency: LatencyTarget | None = None,
        alarms: LatencyAlarms | None = None,
        tokens: Sequence[TokenPanels] = (),
        canary: CanaryPanels | None = None,
        dashboard_name: str | None = None,
    ) -> None:
        """Target, split of the time, traffic, errors, utilization, instances, models, zones.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            endpoint: An :class:`Endpoint`, or one imported with its variants.
            latency: What callers must see, drawn beside them.
            model_latency: What its alarms watch, Durations by statistic or by severity and statistic, drawn as lines.
            alarms: Their states are shown in a row, their limits of utilization and errors as lines. With ``zone_imbalance`` the traffic of each zone is drawn too.
            tokens: Graphs of what language models' servers tell of their tokens: the ``panels`` of :class:`TokenLatencyAlarms`. By default none. CloudWatch draws them.
            canary: What callers in each zone see, and their paths: the ``panels`` of :class:`ZoneCanary`. By default nothing.
            dashboard_name: By default CloudFormation chooses one.

        Raises:
            ConfigurationError: LLE631 for an endpoint imported without variants, LLE701 for
                a threshold of zero, LLE801 and LLE807 for arguments of another kind, LLE931 for a
                name that another dashboard has.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        claim_name(self, "dashboards", dashboard_name)
        milliseconds = partial(check_milliseconds, ALARM_THRESHOLD_MILLISECONDS, where=path)
        shadow = endpoint.shadow
        self.body = dashboard_body(
            endpoint_name=endpoint.name_in(self),
            region=pseudo_parameters()[1],
            variants=[
                _described(endpoint, endpoint.variant_in(self, variant.name), alarms)
                for variant in endpoint.known_variants()
            ],
            targets=latency.milliseconds if latency else {},
            thresholds={
                name: {statistic: milliseconds(each) for statistic, each in value.items()}
                if isinstance(value, Mapping)
                else milliseconds(value)
                for name, value in (model_latency or {}).items()
            },
            alarm_arns=[alarm_arn_of(alarm) for alarm in alarms.alarms.values()] if alarms else [],
            shadow=_described(endpoint, endpoint.variant_in(self, shadow.name)) if shadow else None,
            tokens=tokens,
            canary=canary,
        )
        self.cfn_dashboard = cloudwatch.CfnDashboard(
            self,
            "Resource",
            dashboard_name=dashboard_name,
            dashboard_body=stack_of(self).to_json_string(self.body),
        )


def _described(
    endpoint: IEndpoint, variant: EndpointVariant, alarms: LatencyAlarms | None = None
) -> DashboardVariant:
    types = variant.attributes.instance_types
    first = types[0].facts if len(types) == 1 else None
    scaling = endpoint.scaling_of(variant.name)
    return DashboardVariant(
        name=variant.name,
        vcpus=_vcpus(first),
        gpus=_gpus(first),
        pools=tuple(
            PoolType(type_.name, _vcpus(type_.facts), _gpus(type_.facts))
            for type_ in types
            if len(types) > 1
        ),
        multi_model=variant.attributes.shape == "multi-model",
        max_instances=scaling.highest_maximum if scaling else None,
        scaling_target=scaling.target_invocations if scaling else None,
        utilization_limits=_utilization_limits(alarms.options) if alarms else {},
        error_limits=_error_limits(alarms.options) if alarms else {},
        zones=alarms is not None and alarms.options.zone_imbalance is not None,
    )


def _utilization_limits(options: AlarmOptions) -> dict[str, float]:
    limits = {
        "CPU": options.cpu_utilization,
        "memory": options.memory_utilization,
        "GPU": options.gpu_utilization,
        "GPU memory": options.gpu_memory_utilization,
    }
    return _stated(limits)


def _error_limits(options: AlarmOptions) -> dict[str, float]:
    return _stated({metric: error_share(options, option) for option, metric, _, _ in ERROR_TEXTS})


def _stated(limits: Mapping[str, float | None]) -> dict[str, float]:
    return {quantity: percent for quantity, percent in limits.items() if percent is not None}


def _vcpus(facts: InstanceFacts | None) -> int:
    return (facts.vcpus or 0) if facts else 0


def _gpus(facts: InstanceFacts | None) -> int:
    return (facts.accelerator_count or 0) if facts and facts.accelerator == "nvidia" else 0
