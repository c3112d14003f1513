"""The pattern: a low-latency endpoint from its callers' zones, its target and its throughput."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import jsii
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from ..facts.deployments import rolls_back
from ..facts.limits import ACCOUNT, PARAMETER_PREFIX, REGION
from ..hosting.container import Container
from ..hosting.endpoint import Endpoint
from ..hosting.endpoint_configuration import EndpointConfiguration
from ..hosting.endpoint_metrics import MetricSource
from ..hosting.instance_type import InstanceType
from ..hosting.model import Model
from ..hosting.variant import InstancePool
from ..monitoring.alarms import LatencyAlarms
from ..monitoring.dashboard import LatencyDashboard
from ..network.private_link import RuntimePrivateLink, connections_of
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.alarms import AlarmOptions, Thresholds, error_share
from ..options.argument_kinds import checked_arguments
from ..options.canary import CanaryOptions, canary_bytes, canary_payload, silence_beside
from ..options.endpoint import ConfigurationOptions, EndpointOptions, ModelOptions
from ..options.latency_target import LatencyTarget
from ..options.load import TokenTraffic
from ..options.network import ClientZones
from ..options.safeguards import Safeguards
from ..options.scaling import InstanceCounts, ScalingOptions
from ..options.throughput import MeasuredThroughput
from ..options.variant import VariantOptions
from ..options.warm_up import WarmUpOptions
from ..plan.decisions import PLAN_METADATA, values_in_template
from ..plan.endpoint_request import EndpointRequest
from ..plan.plan import Plan
from ..plan.serving import Serving
from ..synthesis.annotations import warn, warn_once
from ..synthesis.construct_tree import path_below, path_of, region_of, stack_of
from ..synthesis.stated_names import claim_name
from ..synthesis.template_values import check
from .alarms import peak_tps_of, quiet_tps_of, shadow_alarms
from .alarms import token_alarms as made_token_alarms
from .network import known_private_dns, link_of, network_of, zones_of
from .outputs import (
    CallerValue,
    explain_beside_template,
    output_values,
    publish_values,
    values_for_callers,
)
from .variants import (
    FurtherVariant,
    first_containers,
    first_variant,
    further_variant,
    hub_serving_in,
    images_of,
    placed_containers,
    planned_pools,
    planned_type,
    plans_of,
    requests_of,
    scaled_as_planned,
    warnings_of,
)

if TYPE_CHECKING:
    from aws_cdk import Duration

    from ..warm_up.warm_up import WarmUp
    from ..warm_up.zone_canary import ZoneCanary


_OF_THE_TEAM = ("no-latency-target", "no-throughput")
"""Warnings about what a team has not done yet: as true of its tenth endpoint as of its first."""


@checked_arguments
@jsii.implements(ec2.IConnectable)
class LowLatencyEndpoint(MetricSource, Construct):
    """A low-latency endpoint. State callers, target and throughput; the rest is planned.

    Composes :class:`ZoneAlignedNetwork`, :class:`RuntimePrivateLink`, :class:`Model`,
    :class:`EndpointConfiguration`, :class:`Endpoint`, scaling and :class:`LatencyAlarms`. Every
    number that is not given follows from the plan, which explains it: see ``.plan``, the file
    ``<stack>.plan.json`` beside the template, and ``low-latency plan``. Whatever is given wins.

    Attributes
    ----------
    network : ZoneAlignedNetwork
        The subnets in the client zones.
    private_link : RuntimePrivateLink
        The interface endpoint.
    model : Model
        The first variant's model.
    configuration : EndpointConfiguration
        What the endpoint runs.
    endpoint : Endpoint
        The SageMaker endpoint.
    scaling : InvocationScaling or None
        Of the first variant; None if its fleet has a fixed size.
    alarms : LatencyAlarms
        The alarms of all variants.
    dashboard : LatencyDashboard or None
        None with ``dashboard=False``.
    warm_up : WarmUp or None
        None without ``warm_up``.
    canary : ZoneCanary or None
        None without ``canary``.
    plan : Plan
        Of the first variant.
    plans : dict of str to Plan
        Of all variants by name, the first one's first.
    scalings : dict of str to InvocationScaling
        Of all variants by name, the first one's first; None for a fleet of a fixed size.
    shadow_alarms : ShadowAlarms or None
        Beside a shadow.
    token_alarms : dict of str to TokenLatencyAlarms
        By the server whose metrics they ask for; empty for what is no language model.

    Examples
    --------
    In the VPC of your callers:

    >>> from aws_cdk import App, Duration, Environment, Stack, aws_ec2 as ec2
    >>> from low_latency_endpoint import *
    >>> stack = Stack(App(), "Sentiment",
    ...               env=Environment(account="123456789012", region="us-east-1"))
    >>> vpc = ec2.Vpc.from_vpc_attributes(
    ...     stack, "Vpc", vpc_id="vpc-0123456789abcdef0",
    ...     availability_zones=["us-east-1a", "us-east-1b"],
    ...     private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"])
    >>> sentiment = LowLatencyEndpoint(
    ...     stack, "Sentiment", vpc=vpc,
    ...     client_zones=ClientZones.of_names("us-east-1a", "us-east-1b"),
    ...     containers=[Container(
    ...         image=ContainerImage.from_dlc(
    ...             "huggingface-pytorch-inference",
    ...             "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04"),
    ...         data=ModelData.from_uri("s3://models/distilbert/model.tar.gz"),
    ...         environment={"HF_TASK": "text-classification"})],
    ...     instance_type=InstanceType("ml.m5.12xlarge"),
    ...     latency=LatencyTarget(p99=Duration.millis(200)),
    ...     throughput=MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.45))
    >>> sentiment.plan.fleet.at_peak, sentiment.plan.scaling.target
    (12, 5400.0)
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        containers: Sequence[Container],
        instance_type: InstanceType | str | Sequence[InstancePool],
        latency: LatencyTarget | None = None,
        throughput: MeasuredThroughput | None = None,
        client_zones: ClientZones | Sequence[str] | None = None,
        vpc: ec2.IVpc | None = None,
        subnets: Mapping[str, ec2.ISubnet] | None = None,
        subnet_selection: ec2.SubnetSelection | None = None,
        network: ZoneAlignedNetwork | None = None,
        instances: InstanceCounts | None = None,
        network_max_instances: int | None = None,
        private_link: RuntimePrivateLink | None = None,
        private_dns: bool | None = None,
        callers: Sequence[ec2.IConnectable] = (),
        scaling: ScalingOptions | None = None,
        variant: VariantOptions | None = None,
        variants: Sequence[FurtherVariant] = (),
        shadow: FurtherVariant | None = None,
        model: ModelOptions | None = None,
        configuration: ConfigurationOptions | None = None,
        endpoint: EndpointOptions | None = None,
        alarms: AlarmOptions | None = None,
        dashboard: bool = True,
        warm_up: WarmUpOptions | None = None,
        canary: CanaryOptions | None = None,
        safeguards: Safeguards | None = None,
        payload_bytes: int | None = None,
        tokens: TokenTraffic | None = None,
        streaming: bool | None = None,
        plan: Plan | None = None,
    ) -> None:
        """A low-latency endpoint. State callers, target and throughput; the rest is planned.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            client_zones: The callers' Availability Zones, also as a list of zone IDs or of zone names. Required unless ``network`` is given.
            vpc: The callers' VPC. By default a new VPC is created.
            subnets: With ``vpc``: the subnet of each client zone. By default the subnets are chosen by zone name.
            subnet_selection: With ``vpc``, instead of ``subnets``: the subnets to choose from. By default all subnets that are not public, with a warning if a client zone has several.
            network: An existing network. To share a network between endpoints, create a separate :class:`ZoneAlignedNetwork`, because a network that an endpoint created is deleted with it.
            instances: Numbers of instances. By default those of the plan.
            network_max_instances: For a new VPC that other endpoints share (``network=first.network``): the largest number of instances of all these endpoints together. By default the subnets have room for this endpoint, at least a /24 each.
            private_link: An existing interface endpoint. A VPC can have only one with private DNS. To share it, create it outside of the endpoints, as the network. By default a new one is created.
            private_dns: Whether a new interface endpoint answers the runtime's own name in the whole VPC. By default it does, with a warning in an existing VPC. See :class:`RuntimePrivateLink`.
            callers: Security groups, functions, services or ``Peer`` ranges that may connect. By default none; ``.private_link.allow_from(...)`` adds more.
            containers: The model's containers, such as ``[Container.from_hugging_face("Qwen/Qwen3-8B")]``.
            instance_type: The instance type, such as ``"ml.g5.xlarge"``, or several pools, which SageMaker tries by priority. The plan is made for the slowest pool: each pool states its ``tps_per_instance``, and ``throughput`` states that of the slowest.
            latency: The latency that callers must see. Without it there are no latency alarms, and the app prints one warning.
            throughput: Peak load, and what one instance held in a load test. Without it the fleet is one instance per zone without scaling, with a warning.
            payload_bytes: Size of the callers' largest request, which is checked against SageMaker's limit and the time for overhead. By default the size of the warm-up's payload.
            tokens: Tokens of prompts and responses, for a language model that streams. Without them capacity is counted in requests.
            streaming: Whether callers stream responses. By default true if ``tokens``, or targets of ``latency`` on tokens, are stated.
            scaling: How the number of instances follows the load. By default as the plan says.
            variant: The production variant: its name, routing, timeouts, volume, inference AMI, and its weight beside ``variants``.
            variants: Additional variants, each with a share of the requests by weight and a plan for its share of the peak. By default none.
            shadow: A variant that gets copies of the requests and whose responses nobody sees, instead of ``variants``. :class:`ShadowAlarms` compare its latency with 1.2 times that of production, on the target's statistics or else p99, and its error rate with that of ``alarms`` or else 1 %. They notify nobody.
            model: The model's role, inference mode and network isolation.
            configuration: Key, data capture and published metrics.
            endpoint: The endpoint's name and deployment policy, and tags for all resources of SageMaker.
            alarms: Thresholds, and whom the alarms notify: ``AlarmOptions(actions=[topic.action])``. By default the alarms watch the plan's latencies, 5xx of 1 % of the invocations, 85 % of the CPU, 90 % of memory and disk, and all instances of the maximum serving, and notify nobody. Alarms on tokens use the plan's limits, if ``latency`` has targets on tokens and the images' names tell which metrics the container publishes.
            dashboard: Whether to create a dashboard. By default true.
            warm_up: Test requests after each deployment, at least ``WarmUpOptions(payload=WarmUpPayload(data=...))``. The plan gives the number of requests, ``latency`` the target. By default there is no payload, so no warm-up.
            canary: ``CanaryOptions()``, with a payload if there is no ``warm_up``: one request per minute from each client zone measures the path of the callers there. Its alarms notify as ``alarms`` do. By default none.
            safeguards: Key, log retention and roles for everything that this construct creates. By default those of its scope.
            plan: An existing plan of the same arguments, such as that of a settings file. By default the plan is made here.

        Raises:
            ConfigurationError: LLE154, LLE157 when the subnets have no room, LLE432 and
                LLE433 for pools, LLE421, LLE426, LLE431 and LLE434 to LLE436 for several
                variants, LLE158, LLE221, LLE360 for a mapping as ``alarms``, ``warm_up`` or ``canary``,
                LLE928 for a canary without a payload, LLE929 for one beside ``expect_traffic``,
                LLE801 and LLE807 for arguments of another kind, LLE808 for the plan of
                another request, what the plan refuses (LLE8xx), and what the parts refuse.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        check(ACCOUNT, stack_of(self).account, path)
        check(REGION, region_of(self), path)
        if safeguards is not None:
            safeguards.apply_to(self)
        zones = zones_of(client_zones, network, path)
        if isinstance(instance_type, str):
            instance_type = InstanceType(instance_type)
        variant, endpoint = variant or VariantOptions(), endpoint or EndpointOptions()
        alarms = alarms or AlarmOptions()
        containers = first_containers(containers, instance_type, variant, path)
        variants = [placed_containers(each, instance_type, variant, path) for each in variants]
        shadow = shadow and placed_containers(shadow, instance_type, variant, path)
        sized_for = planned_type(instance_type)
        request = EndpointRequest(
            latency=latency,
            throughput=throughput,
            tokens=tokens,
            streaming=streaming,
            payload_bytes=payload_bytes,
            instances=instances or InstanceCounts(),
            scaling=scaling or ScalingOptions(),
            client_zones=zones.zones,
            serving=Serving(
                instance_type=sized_for.name,
                instance_pools=planned_pools(instance_type),
                images=images_of(containers),
                hub=hub_serving_in(containers),
                inference_ami=variant.inference_ami.version if variant.inference_ami else None,
            ),
            routing=variant.routing,
            warm_up_requests=warm_up.requests if warm_up else None,
            metrics_server=alarms.tokens.server,
            warm_up_bytes=warm_up.largest_bytes if warm_up else None,
            canary_bytes=canary_bytes(canary, warm_up),
            alarm_window=alarms.window,
            error_limit=alarms.error_limit,
            slow_limit=alarms.slow_limit,
            period_objective=alarms.period_objective,
            least_first_tokens=alarms.tokens.minimum_requests,
            deployment=endpoint.deployment,
            private_dns=known_private_dns(private_link, private_dns),
        )
        requests = requests_of(request, variant, variants, shadow, path)
        self.plans: dict[str, Plan] = plans_of(requests, plan, path)
        self.plan = plan = self.plans[variant.name]
        self.network = network_of(
            self,
            zones,
            network=network,
            vpc=vpc,
            subnets=subnets,
            subnet_selection=subnet_selection,
            shared_by=network_max_instances,
            own=sum(plan.most for plan in self.plans.values()),
        )
        self.private_link = link_of(
            self, self.network, private_link=private_link, private_dns=private_dns
        )
        for index, caller in enumerate(callers):
            connections_of(caller, f"{path}, callers[{index}]")
            self.private_link.allow_from(caller)
        stated_names = [endpoint.endpoint_name] if endpoint.endpoint_name else []
        self.model = Model(
            self,
            "Model",
            network=self.network,
            containers=containers,
            architecture=sized_for.facts.architecture if sized_for.facts else None,
            endpoint_names=stated_names,
            tags=endpoint.tags,
            **vars(model or ModelOptions()),
        )
        first = first_variant(variant, self.model, instance_type, plan)
        further = {
            each.name: further_variant(
                self,
                each,
                first,
                variant,
                self.plans[each.name],
                network=self.network,
                model=model or ModelOptions(),
                endpoint_names=stated_names,
                tags=endpoint.tags,
            )
            for each in (*variants, *([shadow] if shadow else []))
        }
        self.configuration = EndpointConfiguration(
            self,
            "Configuration",
            variants=[first, *(further[variant.name] for variant in variants)],
            shadow=further[shadow.name] if shadow else None,
            tags=endpoint.tags,
            **vars(configuration or ConfigurationOptions()),
        )
        self.endpoint = Endpoint(
            self,
            "Endpoint",
            configuration=self.configuration,
            keep_instance_counts=self._keeps_counts(request.scaling),
            **vars(endpoint),
        )
        self.private_link.serve(self.endpoint.name_in(self))
        self.scalings = {
            name: scaled_as_planned(self.endpoint, name, plan) for name, plan in self.plans.items()
        }
        self.scaling = self.scalings[variant.name]
        alarms = self._watched(alarms)
        self.alarms = LatencyAlarms(
            self,
            "Alarms",
            endpoint=self.endpoint,
            options=alarms,
            peak_tps=peak_tps_of(self.plans),
            quiet_tps=quiet_tps_of(self.plans),
        )
        metrics = configuration.metrics if configuration is not None else None
        self.token_alarms = made_token_alarms(self, self.endpoint, self.plans, self.alarms, metrics)
        self.canary = self._canary(canary, warm_up, alarms) if canary else None
        self.dashboard = (
            LatencyDashboard(
                self,
                "Dashboard",
                endpoint=self.endpoint,
                model_latency=self._thresholds("ModelLatency", alarms.model_latency),
                latency=latency,
                alarms=self.alarms,
                tokens=[panel for made in self.token_alarms.values() for panel in made.panels],
                canary=self.canary.panels if self.canary else None,
            )
            if dashboard
            else None
        )
        types = [type_ for made in self.plans.values() for type_ in made.request.serving.types]
        policy = endpoint.deployment
        if rolls_back(policy.rollback_on_alarms if policy else None, types):
            rollback = LatencyAlarms(
                self,
                "RollbackAlarms",
                endpoint=self.endpoint,
                options=replace(
                    AlarmOptions.none(),
                    model_latency=alarms.model_latency,
                    error_rate=error_share(alarms, "error_rate"),
                    minimum_failures=alarms.minimum_failures,
                ),
                new_fleet_only=True,
            )
            self.endpoint.roll_back_on(*rollback.alarms.values())
        self.shadow_alarms = shadow_alarms(self, self.endpoint, self.plans, alarms)
        self.warm_up = self._warm_up(warm_up, latency, alarms) if warm_up else None
        self._explain()
        self.node.default_child = self.endpoint.cfn_endpoint

    @property
    @jsii.member(jsii_name="connections")
    def connections(self) -> ec2.Connections:
        """Who may call: those of the private link."""
        return self.private_link.connections

    def grant_invoke(
        self,
        grantee: iam.IGrantable,
        *,
        bidirectional_streaming: bool = False,
        openai: bool = False,
    ) -> iam.Grant:
        """Let a principal invoke the endpoint, as :meth:`Endpoint.grant_invoke` does.

        Args:
            grantee: Who gets the right.
            bidirectional_streaming: These calls too; by default not.
            openai: These calls too; by default not.
        """
        return self.endpoint.grant_invoke(
            grantee, bidirectional_streaming=bidirectional_streaming, openai=openai
        )

    def metric(
        self,
        name: str,
        *,
        statistic: str,
        period: Duration | timedelta | str | None = None,
        fleet: Literal["whole", "new"] = "whole",
        dimensions: Mapping[str, str] | None = None,
    ) -> cloudwatch.Metric:
        """A metric of the endpoint's first variant; see :meth:`MetricSource.metric`."""
        return self.endpoint.metric(
            name, statistic=statistic, period=period, fleet=fleet, dimensions=dimensions
        )

    def output_settings_for_callers(self) -> None:
        """Add stack outputs with what callers need: names, URLs, client settings."""
        output_values(self, self._for_callers())

    def publish_parameters(self, *, prefix: str) -> None:
        """Publish what callers need as SSM parameters: for stacks and programs in any language.

        They are of type ``String``: ``<prefix>/endpoint-name``, ``<prefix>/url`` (the base URL for
        callers in all zones), ``<prefix>/zonal-url/<zone>`` for each client zone, and
        ``<prefix>/client-settings`` (JSON: ``max_pool_connections`` where a load is stated,
        ``tcp_keepalive``, ``keepalive_seconds``). Who reads them needs ``ssm:GetParametersByPath``,
        or ``ssm:GetParameter``, and grants it itself.

        Args:
            prefix: Such as ``/low-latency/sentiment``; another one for each endpoint.

        Raises:
            ConfigurationError: LLE570, LLE807 for arguments of another kind, and LLE931 for a
                prefix that another endpoint has.

        Examples:
            >>> sentiment.publish_parameters(prefix="/low-latency/sentiment")  # doctest: +SKIP

            and in a stack of another language, without a reference to this one:

                ssm.StringParameter.valueForStringParameter(this, '/low-latency/sentiment/url')
        """
        PARAMETER_PREFIX.check(prefix, f"{self.node.path}, prefix")
        claim_name(self, "prefixes of parameters", prefix)
        publish_values(Construct(self, "Parameters"), prefix, self._for_callers())

    def _for_callers(self) -> Iterator[CallerValue]:
        return values_for_callers(self.endpoint.endpoint_name, self.private_link, self.plan)

    def _keeps_counts(self, scaling: ScalingOptions) -> bool | None:
        if scaling.keep_counts is None and not scaling.enabled:
            warn(
                self,
                "scalingOffKeepsCounts",
                "Scaling is off, and updates keep the number of running instances, so a "
                "changed initial number has no effect. Set keep_counts: true if scaling "
                "comes back, or false for a fleet of a fixed size. Change to false only "
                "together with the configuration.",
            )
            return True
        return scaling.keep_counts

    def _warm_up(
        self, stated: WarmUpOptions, latency: LatencyTarget | None, alarms: AlarmOptions
    ) -> WarmUp | None:
        from ..warm_up.warm_up import WarmUp  # loads Events, SQS and more, for those who warm up

        if stated.keep_warm is not None and alarms.expect_traffic:
            raise silence_beside(
                "warm_up.keep_warm", "alarms.expect_traffic beside keep_warm", path_of(self)
            )
        requests = max(plan.warm_up_requests for plan in self.plans.values())
        if not requests:
            return None
        return WarmUp(
            self,
            "WarmUp",
            endpoint=self.endpoint,
            private_link=self.private_link,
            network=self.network,
            latency=latency,
            options=replace(stated, requests=requests),
        )

    def _canary(
        self, stated: CanaryOptions, warm_up: WarmUpOptions | None, alarms: AlarmOptions
    ) -> ZoneCanary:
        from ..warm_up.zone_canary import ZoneCanary

        if alarms.expect_traffic:
            raise silence_beside("canary", "alarms.expect_traffic beside a canary", path_of(self))
        planned = self.plan.thresholds("OverheadLatency").values()
        difference = timedelta(milliseconds=min(planned)) if planned else None
        return ZoneCanary(
            self,
            "Canary",
            endpoint=self.endpoint,
            private_link=self.private_link,
            network=self.network,
            options=replace(
                stated,
                payload=canary_payload(stated, warm_up),
                zone_difference=stated.zone_difference or difference,
            ),
            actions=alarms.actions,
            actions_suppressor=self.alarms.actions_suppressor,
        )

    def _watched(self, options: AlarmOptions) -> AlarmOptions:
        """What is stated, and the plan's for the rest."""
        return replace(
            options,
            model_latency=self._thresholds("ModelLatency", options.model_latency),
            overhead_latency=self._thresholds("OverheadLatency", options.overhead_latency),
        )

    def _thresholds(self, metric: str, stated: Thresholds | str | None) -> Thresholds | None:
        if not isinstance(stated, str):
            return stated
        planned = self.plan.thresholds(metric)
        return {name: timedelta(milliseconds=each) for name, each in planned.items()}

    def _explain(self) -> None:
        for name, plan in self.plans.items():
            key = PLAN_METADATA if plan is self.plan else f"{PLAN_METADATA}::{name}"
            values = values_in_template(plan.explanation.to_dict())
            self.endpoint.cfn_endpoint.add_metadata(key, values)
        explain_beside_template(self, self.plans)
        for warning_id, message in warnings_of(self.plans):
            if message.id.startswith("unknown-instance-type"):
                continue  # the endpoint configuration says so
            say = warn_once if message.id in _OF_THE_TEAM else warn
            say(self, warning_id, message)
