"""A request a minute from each client zone, alarms on its path, and what a dashboard draws of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from ..facts.canary_metrics import (
    ANSWER,
    CANARY_MIB,
    CONNECT,
    DIFFERENCE_MINUTES,
    DIFFERENCE_PERIODS,
    DIMENSIONS,
    NAMESPACE,
    OUT_OF_ZONE,
    OUT_OF_ZONE_MINUTES,
    PATH_MINUTES,
    PUBLISHED,
    UNREACHABLE,
    UNREACHABLE_MINUTES,
)
from ..facts.durations import milliseconds_of
from ..hosting.endpoint_interface import IEndpoint
from ..monitoring.alarm_specifications import AlarmSpecification
from ..monitoring.alarms import is_on, paging_alarms
from ..monitoring.dashboard_panels import CanaryPanels
from ..network.private_link import RuntimePrivateLink
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.argument_kinds import checked_arguments
from ..options.canary import CanaryOptions
from ..options.option import NEEDS_ANOTHER
from ..synthesis.arns import endpoint_arn
from ..synthesis.construct_tree import path_below, stack_of
from ..synthesis.rights import calling_endpoint
from .lambda_functions import DeadLetters, WarmUpFunction, function_code, sender_group
from .payload_targets import check_targets

_TIMEOUT_SECONDS = 150  # two requests, each of the 60 s that SageMaker waits for a model
_IGNORED = cloudwatch.TreatMissingData.IGNORE


@checked_arguments
class ZoneCanary(Construct):
    """Measures, once a minute and from each client zone, the path that callers there take.

    One small function in the subnet of each client zone, of the warm-up's code: it resolves the
    zonal name and the name that callers use, opens a connection to what each answers, and sends the
    payload. Its log has each step; the metrics (namespace ``LowLatencyEndpoint``, by
    ``EndpointName`` and ``Zone``) are ``CanaryConnectTime``, ``CanaryAnswerTime``,
    ``CanaryUnreachable``, ``CanaryRefused`` and ``CanaryOutOfZone``. It keeps an endpoint warm, too. Its requests name
    no inference component: of an endpoint that holds components it measures the path alone.

    Four kinds of alarms. Three page: a zone's path is slow (the time to connect, in which no model
    has a part), no answer that callers could use reaches a zone, and one zone's callers wait longer than the others'. The
    fourth, that the callers' name answers from another zone, pages nobody: AWS's page on SageMaker
    says that it does not, and PrivateLink's page says that regional names answer round robin.

    Attributes
    ----------
    functions : dict of str to WarmUpFunction
        By client zone.
    alarms : dict of str to aws_cloudwatch.Alarm
        By ``path/<zone>``, ``unreachable/<zone>``, ``out-of-zone/<zone>``, and ``difference``.
    composites : dict of str to aws_cloudwatch.CompositeAlarm
        What pages, under ``""``.
    panels : CanaryPanels
        For :class:`LatencyDashboard`.

    Examples
    --------
    >>> from aws_cdk import App, Duration, Environment, Stack
    >>> from low_latency_endpoint import *
    >>> stack = Stack(App(), "Sentiment",
    ...               env=Environment(account="123456789012", region="us-east-1"))
    >>> sentiment = LowLatencyEndpoint(
    ...     stack, "Sentiment", client_zones=ClientZones.of_ids("use1-az1", "use1-az2"),
    ...     containers=[Container(image=ContainerImage.from_uri(
    ...         "123456789012.dkr.ecr.us-east-1.amazonaws.com/sentiment:1"))],
    ...     instance_type=InstanceType("ml.m5.xlarge"), latency=LatencyTarget(p99=Duration.millis(200)))
    >>> canary = ZoneCanary(
    ...     stack, "Canary", endpoint=sentiment.endpoint, private_link=sentiment.private_link,
    ...     network=sentiment.network,
    ...     options=CanaryOptions(payload=WarmUpPayload(data={"inputs": "I like you."})))
    >>> sorted(canary.alarms)[:2]
    ['out-of-zone/use1-az1', 'out-of-zone/use1-az2']
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: IEndpoint,
        private_link: RuntimePrivateLink,
        network: ZoneAlignedNetwork,
        options: CanaryOptions,
        actions: Sequence[cloudwatch.IAlarmAction] = (),
        actions_suppressor: cloudwatch.IAlarm | None = None,
    ) -> None:
        """Measures, once a minute and from each client zone, the path that callers there take.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            endpoint: An :class:`Endpoint`, or one imported.
            private_link: Its security group lets the functions in.
            network: The network the private link was made in; each function takes one address in its zone's subnet.
            options: What is sent, and when an alarm goes off. Its payload is needed here.
            actions: Whom the composite alarm tells; by default nobody, with a warning.
            actions_suppressor: What holds pages back, such as ``alarms.actions_suppressor`` of :class:`LatencyAlarms`; by default nothing.

        Raises:
            ConfigurationError: LLE216 for a network of another VPC, LLE928 without a payload,
                LLE807 for arguments of another kind.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        private_link.check_serves(network, path)
        payload = options.payload
        if payload is None:
            raise NEEDS_ANOTHER.error(
                got="a canary without a payload", allowed="options.payload", where=path
            )
        check_targets(endpoint, [payload], path)
        self._endpoint, self._options = endpoint, options
        self._zonal = bool(private_link.zonal_dns_names)
        self._compares_names = self._zonal and private_link.private_dns
        code = function_code(self, [payload])
        dead_letters = DeadLetters(self, "DeadLetters")
        group = sender_group(self, network, private_link, "Canary")
        zones = network.client_zones.zones
        self.functions: dict[str, WarmUpFunction] = {}
        for zone, subnet_id in zip(zones, network.subnet_ids, strict=True):
            made = WarmUpFunction(
                self,
                f"Zone-{zone}",
                handler="canary.handler",
                description=f"Measures the path from {zone} to {endpoint.name_in(self)}",
                code=code,
                environment={
                    "CANARY": stack_of(self).to_json_string(self._order(private_link, zone))
                },
                timeout_seconds=_TIMEOUT_SECONDS,
                memory_mib=CANARY_MIB,
                dead_letters=dead_letters,
                statements=[],
                vpc=lambda_.CfnFunction.VpcConfigProperty(
                    subnet_ids=[subnet_id], security_group_ids=[group.security_group_id]
                ),
                retries=0,  # the next minute has its own
                event_age_seconds=60,
                reserved_concurrency=None,
            )
            made.allow(calling_endpoint(endpoint_arn(self, endpoint.name_in(self))))
            minute = made.on(
                "Minute",
                description=f"Measures the path from {zone} every minute",
                schedule_expression="rate(1 minute)",
            )
            # Nothing is measured before there is something to measure, and a way to it.
            minute.node.add_dependency(endpoint, group, *private_link.connections.security_groups)
            self.functions[zone] = made
        self.alarms: dict[str, cloudwatch.Alarm] = {}
        watched = [each for zone in zones for each in self._watched(zone)]
        if options.zone_difference is not None:
            watched.append(self._difference(zones, milliseconds_of(options.zone_difference)))
        name = endpoint.name_in(self)
        for each in watched:
            text = f"{each.text(name)} Run: low-latency diagnose {name}"
            self.alarms[each.key] = each.made(self, each.key, text)
        self.composites = paging_alarms(
            self,
            {"": [is_on(alarm) for key, alarm in self.alarms.items() if not _silent(key)]},
            endpoint_name=name,
            says="callers in a client zone see what the model does not. ",
            actions=actions,
            suppressor=actions_suppressor,
        )
        self.panels = CanaryPanels(
            zones=zones, longest_connect=milliseconds_of(options.longest_connect)
        )

    def _order(self, private_link: RuntimePrivateLink, zone: str) -> dict[str, object]:
        names = {"zonal": private_link.zonal_dns_names[zone]} if self._zonal else {}
        if private_link.private_dns or not names:
            names["callers"] = private_link.dns_name
        return {
            "endpoint": self._endpoint.name_in(self),
            "zone": zone,
            "names": names,
            "namespace": NAMESPACE,
            "metrics": PUBLISHED,
        }

    def _metric(self, name: str, zone: str, statistic: str, minutes: int = 1) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=name,
            dimensions_map=dict(zip(DIMENSIONS, (self._endpoint.name_in(self), zone), strict=True)),
            statistic=statistic,
            period=Duration.minutes(minutes),
        )

    def _watched(self, zone: str) -> Iterator[AlarmSpecification]:
        connect = milliseconds_of(self._options.longest_connect)
        yield AlarmSpecification(
            key=f"path/{zone}",
            metric=self._metric(CONNECT, zone, "Maximum"),
            threshold=connect,
            periods=(PATH_MINUTES, PATH_MINUTES),
            when=f"connecting from {zone} takes more than {connect:g} ms",
            means=f"the path from {zone} is slow, not the model: callers there wait this much longer "
            "for each round trip",
            look_first=f"AWS Health for {zone}; lead its callers to another zone's name meanwhile",
        )
        yield AlarmSpecification(
            key=f"unreachable/{zone}",
            # Where the canary itself is silent, the minute counts as one without an answer.
            metric=cloudwatch.MathExpression(
                expression="FILL(unreachable, 1)",
                using_metrics={"unreachable": self._metric(UNREACHABLE, zone, "Maximum")},
                period=Duration.minutes(1),
                label=f"no answer in {zone}",
            ),
            threshold=0,
            periods=(UNREACHABLE_MINUTES, UNREACHABLE_MINUTES),
            missing=_IGNORED,  # before the first run, and after hours of silence
            when=f"what is sent from {zone} is not answered or refused, or nothing can be sent",
            means=f"callers in {zone} cannot reach or may not call the endpoint, or the zone is lost",
            look_first="the canary's log (403: the interface endpoint's policy), then AWS Health for "
            f"{zone}",
        )
        if self._compares_names:
            yield AlarmSpecification(
                key=f"out-of-zone/{zone}",
                metric=self._metric(OUT_OF_ZONE, zone, "Maximum"),
                threshold=0,
                periods=OUT_OF_ZONE_MINUTES,
                when=f"in {zone} the runtime's name answers with another zone's address",
                means="calls leave the zone, which takes longer and is billed",
                look_first="the addresses in the canary's log; callers that must stay in the zone "
                "use its zonal name",
            )

    def _difference(self, zones: Sequence[str], most: float) -> AlarmSpecification:
        answers = {
            f"zone{index}": self._metric(ANSWER, zone, "p50", DIFFERENCE_MINUTES)
            for index, zone in enumerate(zones)
        }
        series = f"[{', '.join(answers)}]"
        return AlarmSpecification(
            key="difference",
            metric=cloudwatch.MathExpression(
                expression=f"MAX({series}) - MIN({series})",
                using_metrics=answers,
                period=Duration.minutes(DIFFERENCE_MINUTES),
                label="slowest zone less fastest, in ms",
            ),
            threshold=most,
            periods=(DIFFERENCE_PERIODS, DIFFERENCE_PERIODS),
            when=f"callers in the slowest zone wait {most:g} ms longer than those in the fastest",
            means="the zones' paths, or the instances that answer them, differ",
            look_first="the panel of answers by zone, then the instances by zone",
        )


def _silent(key: str) -> bool:
    return key.startswith("out-of-zone/")
