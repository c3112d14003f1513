"""Makes the first, slow calls to an endpoint before callers do, and keeps it warm."""

from __future__ import annotations

import json
import math

from aws_cdk import Aws, CustomResource, Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from ..facts.durations import seconds_of
from ..facts.limits import MODEL_BODY_BYTES
from ..facts.warm_up_rules import (
    CONTROLLER_MIB,
    KEEP_WARM_TWICE,
    MARGIN_SECONDS,
    REQUESTS,
    SENDER_MIB,
    keep_warm_threshold,
)
from ..hosting.endpoint_interface import IEndpoint
from ..network.private_link import RuntimePrivateLink
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.argument_kinds import checked_arguments
from ..options.latency_target import LatencyTarget
from ..options.warm_up import KeepWarmOptions, WarmUpOptions
from ..synthesis.annotations import acknowledge_wildcard_resources, warn
from ..synthesis.arns import endpoint_arn
from ..synthesis.construct_tree import path_below, path_of, stack_of
from ..synthesis.rights import (
    calling_endpoint,
    calling_function,
    looking_at_stack,
    looking_at_traffic,
)
from ..synthesis.template_values import check
from .lambda_functions import (
    DeadLetters,
    WarmUpFunction,
    function_code,
    payload_digest,
    sender_group,
)
from .payload_targets import check_targets

DEFAULT_REQUESTS = 100

_SENDER_SECONDS = 150  # as warm_up_function.controller has it
_DEPLOYMENT_EVENT = "SageMaker Endpoint Deployment State Change"


@checked_arguments
class WarmUp(Construct):
    """Sends test requests after each deployment, until the endpoint is as fast as it should be.

    On create and on every new endpoint configuration, once the endpoint is in service, a function
    in the network's subnets sends the payload through the interface endpoint: to each zone by its
    zonal name, to all zones at the same time. It goes on until enough was sent and the last
    requests of each zone succeed and meet the target, or the time is over. A delete never waits,
    and neither a rollback nor a delete can fail for it.

    Two functions do it. The *sender* sits in the isolated subnets and reaches the interface
    endpoint, nothing else. The *controller* runs outside the VPC, because what it talks to has no
    address inside: CloudFormation's answer goes to an S3 URL, traffic is read from CloudWatch, and
    neither a NAT gateway nor an interface endpoint per service is worth their price for that.

    Attributes
    ----------
    outcome, requests_sent, failed_requests, zones_report : str
        Of the last warm-up, as tokens, for instance for outputs. ``outcome`` is ``met``, ``sent``
        (no target was given), ``missed`` or ``refused``; ``zones_report`` is JSON: counts, first
        and last percentiles by zone.
    sender : WarmUpFunction
        The function in the client zones' subnets that sends the requests.
    controller : WarmUpFunction
        The function outside the VPC that reads the result.

    Examples
    --------
    >>> from aws_cdk import App, Duration, Environment, Stack
    >>> from low_latency_endpoint import *
    >>> stack = Stack(App(), "Sentiment",
    ...               env=Environment(account="123456789012", region="us-east-1"))
    >>> latency = LatencyTarget(p99=Duration.millis(200))
    >>> sentiment = LowLatencyEndpoint(
    ...     stack, "Sentiment", client_zones=ClientZones.of_ids("use1-az1", "use1-az2"),
    ...     containers=[Container(image=ContainerImage.from_uri(
    ...         "123456789012.dkr.ecr.us-east-1.amazonaws.com/sentiment:1"))],
    ...     instance_type=InstanceType("ml.m5.xlarge"), latency=latency)
    >>> warm_up = WarmUp(
    ...     stack, "WarmUp", endpoint=sentiment.endpoint, private_link=sentiment.private_link,
    ...     network=sentiment.network, latency=latency,
    ...     options=WarmUpOptions(
    ...         payload=WarmUpPayload(data={"inputs": "I like you."}),
    ...         requests=sentiment.plan.warm_up_requests))
    >>> warm_up.keep_warm(KeepWarmOptions(every="1m"))
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: IEndpoint,
        private_link: RuntimePrivateLink,
        network: ZoneAlignedNetwork,
        options: WarmUpOptions,
        latency: LatencyTarget | None = None,
    ) -> None:
        """Sends test requests after each deployment, until the endpoint is as fast as it should be.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            endpoint: An :class:`Endpoint`, or one imported with its variants; then it warms up again when the ``endpoint_config_name`` it was imported with, or another property here, changes.
            private_link: Its security group lets the sender in.
            network: The network the private link was made in; the sender takes one address in each subnet.
            options: What is sent, how much of it, and what becomes of a miss.
            latency: What the last requests must meet, as the sender sees it; by default they must succeed.

        Raises:
            ConfigurationError: LLE541 for no request, LLE545 and LLE546 for the file of a payload,
                LLE216 for a network of another VPC, LLE928 and LLE929 for payloads without the model
                that a multi-model endpoint needs, or with one, LLE553 for keep-warm requests that count as
                traffic, LLE807 for arguments of another kind.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        stated_requests = options.requests
        requests = check(
            REQUESTS, DEFAULT_REQUESTS if stated_requests is None else stated_requests, path
        )
        seconds = int(seconds_of(options.timeout))
        private_link.check_serves(network, path)
        check_targets(endpoint, options.payloads, path)
        if any(len(payload.body) > MODEL_BODY_BYTES for payload in options.payloads):
            warn(
                self,
                "warmUpPayloadSize",
                f"A warm-up payload is larger than {MODEL_BODY_BYTES:,} bytes, the limit in the "
                "API's model; the guide says 25 MB.",
            )
        zones = self._zones(private_link)
        self._endpoint = endpoint
        self._zone_count = len(zones)
        self._kept_warm = False
        requests_per_zone = math.ceil(requests / len(zones))
        code = function_code(self, options.payloads)
        dead_letters = DeadLetters(self, "DeadLetters")
        group = sender_group(self, network, private_link, "Warm-up")
        stack = stack_of(self)
        self.sender = WarmUpFunction(
            self,
            "Sender",
            handler="sender.handler",
            description=f"Sends warm-up requests to {endpoint.name_in(self)}",
            code=code,
            environment={
                "WARM_UP": stack.to_json_string(
                    {"endpoint": endpoint.name_in(self), "zones": zones}
                )
            },
            timeout_seconds=_SENDER_SECONDS,
            memory_mib=SENDER_MIB,
            dead_letters=dead_letters,
            statements=[],
            vpc=lambda_.CfnFunction.VpcConfigProperty(
                subnet_ids=network.subnet_ids, security_group_ids=[group.security_group_id]
            ),
            retries=0,
            event_age_seconds=300,
            reserved_concurrency=options.reserved_concurrency,
        )
        self.sender.allow(calling_endpoint(endpoint_arn(self, endpoint.name_in(self))))
        self.controller = WarmUpFunction(
            self,
            "Controller",
            handler="controller.handler",
            description=f"Decides when {endpoint.name_in(self)} is warmed up",
            code=code,
            environment={
                "SENDER": self.sender.arn,
                "WARM_UP": json.dumps(
                    {
                        "endpoint": endpoint.name_in(self),
                        "variants": [variant.name for variant in endpoint.known_variants()],
                        "requests_per_zone": requests_per_zone,
                    }
                ),
            },
            timeout_seconds=seconds + MARGIN_SECONDS,
            memory_mib=CONTROLLER_MIB,
            dead_letters=dead_letters,
            statements=[calling_function(self.sender.arn), looking_at_stack(Aws.STACK_ID)],
            retries=1,
            event_age_seconds=3600,
            reserved_concurrency=options.reserved_concurrency,
        )
        resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::WarmUp",
            service_token=self.controller.arn,
            # A function that dies must not hold the stack for CloudFormation's hour.
            service_timeout=Duration.seconds(seconds + MARGIN_SECONDS + 120),
            properties={
                "EndpointName": endpoint.endpoint_name,
                "EndpointConfigName": endpoint.endpoint_config_name or "",
                "RequestsPerZone": requests_per_zone,
                "ConcurrencyPerZone": options.concurrency_per_zone,
                "Last": options.last,
                "Target": dict(latency.milliseconds) if latency else {},
                "TimeoutSeconds": seconds,
                "OnMiss": options.on_miss.upper(),
                "Payload": payload_digest(options.payloads),
                **({"Metrics": "true"} if options.metrics else {}),
            },
        )
        # Their rules let the sender through; nothing else refers to them.
        resource.node.add_dependency(group, *private_link.connections.security_groups)
        if endpoint.confirmation is not None:
            resource.node.add_dependency(endpoint.confirmation)  # what serves is what was meant
        self.outcome: str = resource.get_att_string("Outcome")
        self.requests_sent: str = resource.get_att_string("Requests")
        self.failed_requests: str = resource.get_att_string("FailedRequests")
        self.zones_report: str = resource.get_att_string("Zones")
        if options.during_deployments:
            self.controller.on(
                "Deployments",
                description=f"Deployments of {endpoint.name_in(self)}",
                event_pattern={
                    "source": ["aws.sagemaker"],
                    "detail-type": [_DEPLOYMENT_EVENT],
                    "resources": [endpoint.endpoint_arn],
                },
            )

        if options.keep_warm is not None:
            self.keep_warm(options.keep_warm)

    def keep_warm(self, options: KeepWarmOptions) -> None:
        """Send a few requests to each zone on a schedule, while callers send hardly any.

        The controller reads the endpoint's ``Invocations`` first, and sends only while there were
        fewer than ``below_tps``. Those it sent itself count too.

        Args:
            options: How often, how many, and below which traffic.

        Raises:
            ConfigurationError: LLE553 for requests that count as traffic, LLE554 for a second call.
        """
        path = path_of(self)
        if self._kept_warm:
            raise KEEP_WARM_TWICE.error(got="a second keep_warm(...)", allowed="one", where=path)
        seconds = int(seconds_of(options.every))
        threshold = keep_warm_threshold(
            zones=self._zone_count,
            requests_per_zone=options.requests_per_zone,
            every_seconds=seconds,
            below_tps=options.below_tps,
            where=path,
        )
        self._kept_warm = True
        acknowledge_wildcard_resources(
            self.controller.allow(looking_at_traffic()),
            ["*"],
            reason="cloudwatch:GetMetricStatistics takes no resource.",
        )
        minutes = seconds // 60
        self.controller.on(
            "KeepWarm",
            description=f"Keeps {self._endpoint.name_in(self)} warm while traffic is low",
            schedule_expression=f"rate({minutes} minute{'s' if minutes > 1 else ''})",
            input=json.dumps(
                {
                    "keep_warm": {
                        "requests_per_zone": options.requests_per_zone,
                        "below_tps": threshold,
                        "window_seconds": int(seconds_of(options.window)),
                    }
                }
            ),
        )

    def _zones(self, private_link: RuntimePrivateLink) -> dict[str, str]:
        """Zone -> the name that is called there."""
        if private_link.zonal_dns_names:
            return dict(private_link.zonal_dns_names)
        warn(
            self,
            "warmUpWithoutZonalNames",
            "The interface endpoint's zonal names are not known (pass regional_dns_name "
            "to from_interface_endpoint). Warm-up requests go to the regional name, "
            "which does not control the zone that answers.",
        )
        return {"region": private_link.dns_name}
