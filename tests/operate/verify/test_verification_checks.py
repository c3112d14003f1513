"""Each check after a deploy: the shipped stack as it is, with one answer changed, or refused."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from operator import getitem
from typing import Any

import pytest

from local_sagemaker import LocalAws
from low_latency_client.zone import ClientZone
from low_latency_endpoint.operate.checking.checks import Report, checks
from low_latency_endpoint.operate.verify import Machine, run_verification
from low_latency_endpoint.operate.verify.path_checks import zonal_names
from tests.fake_aws import REFUSED, Refused
from tests.operate.conftest import NAME, STACK
from tests.operate.outcomes import assert_told
from tests.operate.verify.tampered import Change, Tampered

ACCOUNT, REGION = "123456789012", "us-east-1"
RUNTIME = f"runtime.sagemaker.{REGION}.amazonaws.com"

# The interface endpoint's addresses, as the changed answers give them: one in each client zone.
ADDRESSES = {"10.0.0.10": f"{REGION}b", "10.0.1.10": f"{REGION}c"}
OWN = "10.0.0.99"


OUTSIDE = Machine(
    resolve=lambda name: ["203.0.113.7"],
    own_address=lambda: "192.168.1.5",
    client_zone=lambda: None,
    tls_names=lambda host: pytest.fail("nothing may be connected to from outside"),
)


def machine(
    answers: Sequence[str],
    *,
    zone: str | None = f"{REGION}b",
    tls: Any = lambda host: ["*.runtime.sagemaker.us-east-1.vpce.amazonaws.com"],
    own: str | None = OWN,
) -> Machine:
    """A machine in the VPC, in a zone."""
    return Machine(
        resolve=lambda name: answers if name == RUNTIME else [],
        own_address=lambda: own,
        client_zone=lambda: zone and ClientZone.of(zone),
        tls_names=tls,
    )


def interfaces(parsed: dict[str, Any]) -> None:
    parsed["NetworkInterfaces"] = [
        {"PrivateIpAddress": address, "AvailabilityZone": zone}
        for address, zone in ADDRESSES.items()
    ]


def link(change: Any = None, **values: Any) -> Change:
    """Change the runtime's interface endpoint."""

    def changed(parsed: dict[str, Any]) -> None:
        for each in parsed["VpcEndpoints"]:
            if each["VpcEndpointType"] == "Interface":
                each.setdefault("NetworkInterfaceIds", ["eni-0123456789abcdef0"])
                each.update(values)
                if change is not None:
                    change(each)

    return changed


def answer(**changes: Any) -> Change:
    return lambda parsed: parsed.update(changes)


def nested(*path: str | int, **changes: Any) -> Change:
    return lambda parsed: reduce(getitem, path, parsed).update(changes)


def first(place: str, **changes: Any) -> Change:
    return nested(place, 0, **changes)


def pools_of(*types: str) -> Change:
    pools = [{"InstanceType": each, "Priority": n} for n, each in enumerate(types, 1)]
    return first("ProductionVariants", InstanceType=None, InstancePools=pools)


def alarms(metric: str, **changes: Any) -> Change:
    def changed(parsed: dict[str, Any]) -> None:
        for each in parsed["MetricAlarms"]:
            if each.get("MetricName") == metric:
                each.update(changes)

    return changed


def without_alarm(parsed: dict[str, Any]) -> None:
    parsed["MetricAlarms"] = [
        each for each in parsed["MetricAlarms"] if each.get("MetricName") != "OverheadLatency"
    ]


def deploying(parsed: dict[str, Any]) -> None:
    """One alarm compares the new fleet with the whole endpoint, and is on."""
    latencies = (a for a in parsed["MetricAlarms"] if a.get("MetricName") == "OverheadLatency")
    changed = next(latencies, None)
    if changed is None:  # asked for the composite ones
        return
    whole = changed.pop("Dimensions")
    del changed["MetricName"], changed["Namespace"]
    new = [*whole, {"Name": "EndpointConfigName", "Value": "sentiment-2"}]
    metric = {"Namespace": "AWS/SageMaker", "MetricName": "Invocations"}
    changed.update(
        StateValue="ALARM",
        StateReason="both take requests",
        Metrics=[
            {"Id": name, "MetricStat": {"Metric": {**metric, "Dimensions": of}, **MINUTE_SUM}}
            for name, of in (("new", new), ("whole", whole))
        ],
    )


MINUTE_SUM = {"Period": 60, "Stat": "Sum"}


def data(parsed: dict[str, Any], *, metrics: int | None = None) -> None:
    """The first metrics have data, or all."""
    for number, each in enumerate(parsed["MetricDataResults"]):
        each["Values"] = [1.0] if metrics is None or number < metrics else []
        each["Timestamps"] = [datetime.now(UTC) - timedelta(minutes=5) for _ in each["Values"]]


def canary(*, runs: int = 15, **values: float) -> dict[str, Change]:
    """A canary in one zone, whose metrics are these in the first of 15 minutes, by default all."""
    whole = {"CanaryConnectTime": 0.9, "CanaryAnswerTime": 52.0, "CanaryUnreachable": 0.0}
    whole |= {"CanaryOutOfZone": 0.0, "CanaryRefused": 0.0, **values}
    dimensions = [{"Name": "EndpointName", "Value": NAME}, {"Name": "Zone", "Value": "use1-az1"}]

    def listed(parsed: dict[str, Any]) -> None:
        metric = {"Namespace": "LowLatencyEndpoint", "MetricName": "CanaryUnreachable"}
        parsed["Metrics"] = [{**metric, "Dimensions": dimensions}]

    def measured(parsed: dict[str, Any]) -> None:
        begin = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=15)
        for each, value in zip(parsed["MetricDataResults"], whole.values(), strict=False):
            each["Timestamps"] = [begin + timedelta(minutes=n) for n in range(runs)]
            each["Values"] = [value] * runs

    return {"ListMetrics": listed, "GetMetricData": measured}


def seen(value: float) -> Change:
    """All metrics are this, latencies in microseconds, in each of forty minutes."""

    def changed(parsed: dict[str, Any]) -> None:
        begin = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=50)
        for each in parsed["MetricDataResults"]:
            each["Timestamps"] = [begin + timedelta(minutes=n) for n in range(40)]
            each["Values"] = [value] * 40

    return changed


def ingress(*rules: Mapping[str, Any]) -> Change:
    """What the interface endpoint's group lets in."""
    permissions = [{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, **each} for each in rules]

    def changed(parsed: dict[str, Any]) -> None:
        for each in parsed["SecurityGroups"]:
            each["IpPermissions"] = permissions

    return changed


def cidr(block: str) -> dict[str, Any]:
    return {"IpRanges": [{"CidrIp": block}]}


def template(change: Any) -> Change:
    """Change the template's resources."""

    def changed(parsed: dict[str, Any]) -> None:
        body = parsed["TemplateBody"]
        body = json.loads(body) if isinstance(body, str) else dict(body)
        change(body["Resources"])
        parsed["TemplateBody"] = json.dumps(body)

    return changed


def stated(kind: str, **changes: Any) -> Change:
    """Change the template's resources of a kind, or those whose properties have such a value."""

    def changed(resources: dict[str, Any]) -> None:
        for each in resources.values():
            properties = each.get("Properties", {})
            if kind == each["Type"] or kind in map(str, properties.values()):
                properties.update(changes)

    return template(changed)


def asking(query: str) -> dict[str, Change]:
    """Every alarm of the stack asks this, by the template and by CloudWatch."""
    criteria = {"PromQLCriteria": {"Query": query}}

    def in_template(resources: dict[str, Any]) -> None:
        for each in resources.values():
            if each["Type"] == "AWS::CloudWatch::Alarm":
                each["Properties"] = {"EvaluationCriteria": criteria}

    def in_cloudwatch(parsed: dict[str, Any]) -> None:
        for each in parsed["MetricAlarms"]:
            each["EvaluationCriteria"] = criteria

    return {"GetTemplate": template(in_template), "DescribeAlarms": in_cloudwatch}


def composite(changes: Mapping[str, Any] | None) -> Change:
    """The composite alarm is changed, or gone."""

    def changed(parsed: dict[str, Any]) -> None:
        for each in parsed["CompositeAlarms"]:
            each.update(changes or {})
        if changes is None:
            parsed["CompositeAlarms"] = []

    return changed


def without_plan(resources: dict[str, Any]) -> None:
    for each in resources.values():
        each.pop("Metadata", None)


def without_scaling(resources: dict[str, Any]) -> None:
    for key in [key for key in resources if "ApplicationAutoScaling" in resources[key]["Type"]]:
        del resources[key]


def other_zone(parsed: dict[str, Any]) -> None:
    """The second zone's subnets lie in a third zone."""
    for each in parsed["Subnets"]:
        if each["AvailabilityZoneId"] == "use1-az2":
            each.update(AvailabilityZone=f"{REGION}f", AvailabilityZoneId="use1-az5")


def beside_another(parsed: dict[str, Any]) -> None:
    """Without private DNS, and somebody else's endpoint has it."""
    own = [each for each in parsed["VpcEndpoints"] if each["VpcEndpointType"] == "Interface"]
    parsed["VpcEndpoints"][:0] = [
        {**each, "VpcEndpointId": "vpce-0fedcba9876543210", "State": "pending"} for each in own
    ]
    for each in own:
        each.update(PrivateDnsEnabled=False)


def failing(error: Exception) -> Callable[[str], Sequence[str]]:
    def tls_names(host: str) -> Sequence[str]:
        raise error

    return tls_names


#: A new configuration that bakes.
PENDING = {
    "EndpointConfigName": "new",
    "StartTime": datetime(2026, 11, 20, 3, 42, tzinfo=UTC),
    "ProductionVariants": [{"VariantName": "primary", "VariantStatus": [{"Status": "Baking"}]}],
}
TOPIC = "arn:aws:sns:us-east-1:123456789012:pager"
GONE = Refused("ValidationException", "Could not find it.", 400)
UNTRUSTED = failing(ssl.SSLCertVerificationError(1, "hostname mismatch"))
UNANSWERED = failing(TimeoutError("timed out"))
ENDPOINTS = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/"
ALLOW = {"Effect": "Allow", "Principal": "*", "Action": "sagemaker:InvokeEndpoint", "Resource": "*"}
DENY = {**ALLOW, "Effect": "Deny"}
MINE = {
    **ALLOW,
    "Resource": ENDPOINTS + NAME,
    "Condition": {"StringEquals": {"aws:PrincipalAccount": "123456789012"}},
}
OF_ORG = {**ALLOW, "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}}
FROM_VPC = {**ALLOW, "Condition": {"StringEquals": {"aws:SourceVpc": "vpc-1"}}}
MY_ACCOUNT = "123456789012"
ROLES = "arn:aws:iam::123456789012"
ROLE = f"{ROLES}:role/somebody-else"
SERVICES = {
    "application-autoscaling": ("DescribeScalableTargets", "DescribeScalingPolicies"),
    "cloudformation": ("DescribeStacks", "GetTemplate"),
    "cloudwatch": ("DescribeAlarms", "GetMetricData", "ListMetrics"),
    "ec2": (
        "DescribeNetworkInterfaces",
        "DescribeSecurityGroups",
        "DescribeSubnets",
        "DescribeVpcEndpoints",
    ),
    "sagemaker": ("DescribeEndpoint", "DescribeEndpointConfig", "DescribeModel"),
}
SERVICE_OF = {operation: service for service, all_ in SERVICES.items() for operation in all_}


def at_services(changes: Mapping[str, Change]) -> dict[str, Change]:
    return {f"{SERVICE_OF[operation]}.{operation}": each for operation, each in changes.items()}


OF_INSIDE: dict[str, Change] = {
    "DescribeVpcEndpoints": link(),
    "DescribeNetworkInterfaces": interfaces,
}
INSIDE = at_services(OF_INSIDE)


@dataclass(frozen=True)
class Case:
    """What is changed, and what must come out of one check."""

    check: str = ""
    status: str = ""
    words: tuple[str, ...] = ()
    changes: Mapping[str, Change] = field(default_factory=dict)
    machine: Machine = OUTSIDE

    def __str__(self) -> str:
        return "-".join((self.check, self.status, *self.words[:1])).replace(" ", "_")[:50]


def case(
    status: str, check: str, *words: str, machine: Machine = OUTSIDE, **changes: Change
) -> Case:
    return Case(check, status, words, at_services(changes), machine)


passes, fails, warns, unknown = (
    partial(case, status) for status in ("pass", "fail", "warn", "unknown")
)


def inside(check: str, status: str, *words: str, at: Sequence[str], **of: Any) -> Case:
    """A machine in the VPC, for which the runtime's name resolves to these addresses."""
    return case(status, check, *words, machine=machine(at, **of), **OF_INSIDE)


def linked(check: str, status: str, *words: str, by: Change, **changes: Change) -> Case:
    """The runtime's interface endpoint is another."""
    return case(status, check, *words, DescribeVpcEndpoints=by, **changes)


def judged(status: str, words: str, *statements: Mapping[str, Any], **changes: Change) -> Case:
    """The interface endpoint's policy is another; words stand between ``" & "``."""
    policy = {"Version": "2012-10-17", "Statement": statements}
    document = link(PolicyDocument=json.dumps(policy))
    return linked("LLV304", status, *words.split(" & "), by=document, **changes)


GROUP = "sg-0123456789abcdef0"
SLOWER = alarms("ModelLatency", Threshold=900000.0)
NO_PRIVATE_DNS = stated("Interface", PrivateDnsEnabled=False)
ARN_PARTS = "arn:aws:sagemaker:us-east-1:", {"Ref": "AWS::AccountId"}, ":endpoint/*"
WIDE = stated(
    "Interface",
    PolicyDocument={
        "Statement": [{"Effect": "Allow", "Resource": [{"Fn::Join": ["", [*ARN_PARTS]]}]}]
    },
)
CASES = [
    passes("LLV101", "CREATE_COMPLETE"),
    *(
        case(status, "LLV101", words, DescribeStacks=first("Stacks", StackStatus=stack))
        for status, words, stack in (
            ("warn", "rolled back", "UPDATE_ROLLBACK_COMPLETE"),
            ("fail", "UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"),
            ("fail", "docs/how-to/roll-back.md", "UPDATE_ROLLBACK_FAILED"),
            ("fail", "delete the stack", "DELETE_FAILED"),
        )
    ),
    fails(
        "LLV101",
        "the endpoint did not go back",
        DescribeStacks=first(
            "Stacks",
            StackStatus="UPDATE_ROLLBACK_FAILED",
            StackStatusReason="the endpoint did not go back",
        ),
    ),
    passes("LLV102", NAME),
    warns("LLV102", "no SageMaker endpoint", GetTemplate=template(dict.clear)),
    *(
        unknown(check, "no plan", GetTemplate=template(without_plan))
        for check in ("LLV102", "LLV201", "LLV403", "LLV502")
    ),
    # --- zones
    passes("LLV201", "use1-az1, use1-az2, the callers' zones"),
    linked("LLV201", "fail", "has no private DNS", by=link(PrivateDnsEnabled=False)),
    *(
        linked("LLV201", "pass", "no private DNS, as stated", by=by, GetTemplate=NO_PRIVATE_DNS)
        for by in (link(PrivateDnsEnabled=False), beside_another)
    ),
    passes(
        "LLV201",
        "use1-az1, use1-az2, the callers' zones",
        DescribeEndpointConfig=first("ProductionVariants", ModelName=None),
    ),
    linked("LLV201", "fail", "pending", by=link(State="pending")),
    linked("LLV201", "fail", "not its regional one", by=link(DnsEntries=[{"DnsName": RUNTIME}])),
    linked("LLV201", "fail", "no interface endpoint", by=link(State="deleted")),
    fails("LLV201", "not in use1-az2", DescribeSubnets=other_zone),
    passes("LLV202", "the callers' zones"),
    fails("LLV202", "not in use1-az2", DescribeSubnets=other_zone),
    linked("LLV202", "warn", "not in both", by=link(lambda each: each["SubnetIds"].pop())),
    fails("LLV202", "in no VPC", DescribeModel=lambda parsed: parsed.pop("VpcConfig")),
    # --- the way of a call
    unknown("LLV301", "not inside the VPC"),
    inside("LLV301", "pass", RUNTIME, "10.0.0.10", "this machine's zone", at=["10.0.0.10"]),
    inside("LLV301", "pass", "this machine's zone", at=["10.0.0.10"], zone="use1-az1"),
    inside(
        "LLV301", "warn", "this machine is in us-east-1b", "ZonalUrl", at=["10.0.0.10", "10.0.1.10"]
    ),
    inside("LLV301", "fail", "each call changes the zone", at=["10.0.1.10"]),
    inside("LLV301", "unknown", "LOW_LATENCY_CLIENT_ZONE", at=["10.0.0.10"], zone=None),
    inside("LLV301", "fail", "203.0.113.7, none of them", at=["203.0.113.7"]),
    inside("LLV301", "fail", "resolves to nothing", at=[]),
    # An office whose range is the VPC's own: no network interface has the address.
    linked(
        "LLV301",
        "unknown",
        "not inside the VPC",
        by=link(NetworkInterfaceIds=[]),
        machine=machine(["203.0.113.7"]),
        DescribeNetworkInterfaces=answer(NetworkInterfaces=[]),
    ),
    passes("LLV301", "own address in 15 of", **canary()),
    warns("LLV301", "out of the zone in 15 of 15", "ZonalUrl", **canary(CanaryOutOfZone=1.0)),
    passes("LLV305", "15 of 15 runs answered", "connecting 0.9 ms", **canary()),
    fails("LLV305", "15 of the canary's 15 runs got no answer", **canary(CanaryUnreachable=1.0)),
    fails(
        "LLV305",
        "15 of the canary's 15 runs were refused",
        **canary(CanaryUnreachable=1.0, CanaryRefused=1.0),
    ),
    unknown("LLV305", "the canary has been silent since", **canary(runs=8)),
    fails("LLV305", "connecting takes 21 ms, more than 10 ms", **canary(CanaryConnectTime=21)),
    unknown("LLV302", "not inside the VPC"),
    passes("LLV302", "the canary got answers by this name in 15 runs", **canary()),
    unknown("LLV302", "not inside the VPC", **canary(CanaryUnreachable=1.0)),
    inside("LLV302", "pass", "certificate for *.runtime", at=["10.0.0.10"]),
    inside("LLV302", "pass", "certificate for", at=["10.0.0.10"], own=None),
    inside("LLV302", "fail", "hostname mismatch", at=["10.0.0.10"], tls=UNTRUSTED),
    inside("LLV302", "fail", "timed out", "port 443", at=["10.0.0.10"], tls=UNANSWERED),
    passes("LLV303", "10.0.0.0/16"),
    *(
        case(status, "LLV303", words, DescribeSecurityGroups=ingress(*rules))
        for status, words, rules in (
            ("fail", "lets nobody in", ()),
            (
                "fail",
                "lets nobody in",
                ({**cidr("10.0.0.0/16"), "FromPort": 8443, "ToPort": 8443},),
            ),
            ("warn", "0.0.0.0/0", (cidr("0.0.0.0/0"),)),
            ("warn", "not the client zones' own subnets", (cidr("10.9.0.0/16"),)),
            ("pass", GROUP, ({"UserIdGroupPairs": [{"GroupId": GROUP}]},)),
        )
    ),
    passes("LLV304", "by this account alone, and no other endpoint"),
    judged("fail", f"does not let & {NAME}", {**ALLOW, "Resource": ENDPOINTS + "other"}),
    judged("warn", "other endpoints and other accounts' principals", ALLOW),
    judged("warn", "other endpoints too", {**ALLOW, "Principal": {"AWS": f"{ROLES}:root"}}),
    judged("unknown", "aws:PrincipalOrgID", OF_ORG),
    judged("fail", "does not let", FROM_VPC),  # the link is in another VPC
    judged(
        "pass",
        "by this account alone & other endpoints are not judged & as the template allows",
        {**MINE, "Resource": ENDPOINTS + "*"},
        GetTemplate=WIDE,
    ),
    judged("warn", "and other accounts' principals too", ALLOW, GetTemplate=WIDE),
    # Data perimeters: ordinary statements, whose keys only the request itself knows.
    *(
        judged(
            "unknown",
            f"{operator} {key}",
            MINE,
            {**DENY, "Action": "*", "Condition": {operator: {key: value}}},
        )
        for operator, key, value in (
            ("StringNotEquals", "aws:PrincipalOrgID", "o-another"),
            ("StringNotEqualsIfExists", "aws:PrincipalOrgPaths", "o-another/*"),
            ("Bool", "aws:SecureTransport", "false"),
        )
    ),
    *(
        judged(status, words, MINE, {**DENY, "Condition": {"StringNotEquals": {key: accounts}}})
        for status, words, key, accounts in (
            ("pass", "and no other endpoint", "aws:PrincipalAccount", "123456789012"),
            ("pass", "and no other endpoint", "aws:ResourceAccount", "123456789012"),
            ("fail", "does not let", "aws:PrincipalAccount", ["210987654321", "111122223333"]),
        )
    ),
    judged("unknown", ROLE, {**MINE, "Principal": {"AWS": ROLE}}),
    judged("unknown", ROLE, MINE, {**DENY, "Principal": {"AWS": ROLE}}),
    judged("unknown", "lets & what else & aws:PrincipalOrgID", MINE, OF_ORG),
    judged("fail", "does not let", ALLOW, {**DENY, "Resource": f"arn:*:*:*:*:endpoint/{NAME}"}),
    judged("unknown", f"endpoi?t/{NAME}", {**MINE, "Resource": f"arn:aws:*:*:*:endpoi?t/{NAME}"}),
    # Accounts by variables, as AWS's own policies have them.
    *(
        judged(status, words, MINE, {**DENY, "Condition": {"StringNotEquals": wanted}})
        for status, words, wanted in (
            ("pass", "no other endpoint", {"aws:ResourceAccount": "${aws:PrincipalAccount}"}),
            ("fail", "does not let", {"aws:ResourceAccount": "${aws:SourceVpc}"}),
            ("unknown", "aws:ResourceAccount", {"aws:ResourceAccount": "${aws:userid}"}),
            ("fail", "does not let", {"aws:SourceVpc": "vpc-other"}),
        )
    ),
    # IAM's page has no variable before the fifth colon, AWS's own policies have.
    judged(
        "unknown",
        "${aws:PrincipalAccount}",
        {**MINE, "Resource": (ENDPOINTS + NAME).replace(MY_ACCOUNT, "${aws:PrincipalAccount}")},
    ),
    # --- the fleet
    passes("LLV401", "InService"),
    fails(
        "LLV401",
        "Failed: out of capacity",
        DescribeEndpoint=answer(EndpointStatus="Failed", FailureReason="out of capacity"),
    ),
    passes("LLV401", "former", DescribeEndpoint=answer(EndpointConfigName="former")),
    *(
        warns(
            "LLV401",
            "Updating: updating to new since 03:42 (Baking)",
            DescribeEndpoint=answer(EndpointStatus=status, PendingDeploymentSummary=PENDING),
        )
        for status in ("Updating",)
    ),
    *(
        unknown(
            check,
            "updating to new since 03:42 (Baking): what is described is the fleet before it",
            DescribeEndpoint=answer(EndpointStatus="Updating", PendingDeploymentSummary=PENDING),
        )
        for check in ("LLV202", "LLV402", "LLV403", "LLV404", "LLV406", "LLV407")
    ),
    warns("LLV401", "counts or weights", DescribeEndpoint=answer(EndpointStatus="Updating")),
    unknown("LLV407", "is Updating", DescribeEndpoint=answer(EndpointStatus="Updating")),
    passes(
        "LLV409",
        "LowLatencyEndpoint-",
        DescribeEndpoint=answer(EndpointStatus="Updating", PendingDeploymentSummary=PENDING),
    ),
    fails(
        "LLV409",
        "the model that serves primary, is deleted",
        "of that name again",
        DescribeModel=GONE,
    ),
    passes("LLV402", "ml.m5.12xlarge"),
    fails(
        "LLV402",
        "ml.m5.large, the plan says ml.m5.12xlarge",
        DescribeEndpointConfig=first("ProductionVariants", InstanceType="ml.m5.large"),
    ),
    *(
        case(status, "LLV402", words, DescribeEndpointConfig=pools_of(*types))
        for status, words, types in (
            ("pass", "ml.m5.24xlarge, ml.m5.12xlarge", ("ml.m5.24xlarge", "ml.m5.12xlarge")),
            ("fail", "ml.m5.large, the plan says ml.m5.12xlarge", ("ml.m5.large",)),
        )
    ),
    passes("LLV403", "LEAST_OUTSTANDING_REQUESTS"),
    fails(
        "LLV403",
        "RANDOM, the plan says LEAST",
        DescribeEndpointConfig=first("ProductionVariants", RoutingConfig={}),
    ),
    passes("LLV404", "12 of 12 wanted", "2 to 24"),
    *(
        case(status, "LLV404", *words, DescribeEndpoint=first("ProductionVariants", **counts))
        for status, words, counts in (
            ("warn", ("6 of 12", "capacity"), {"CurrentInstanceCount": 6}),
            ("fail", ("30 of 30",), {"CurrentInstanceCount": 30, "DesiredInstanceCount": 30}),
        )
    ),
    passes(
        "LLV404",
        "30 of 30",
        "2 to 40",
        DescribeEndpoint=first(
            "ProductionVariants", CurrentInstanceCount=30, DesiredInstanceCount=30
        ),
        GetTemplate=stated(
            "AWS::ApplicationAutoScaling::ScalableTarget",
            ScheduledActions=[{"ScalableTargetAction": {"MinCapacity": 12, "MaxCapacity": 40}}],
        ),
    ),
    passes("LLV405", "2 to 24", "5,400"),
    *(
        case(status, "LLV405", words, DescribeScalableTargets=change)
        for status, words, change in (
            ("fail", "not registered", answer(ScalableTargets=[])),
            (
                "fail",
                "MaxCapacity is 9, the template says 24",
                first("ScalableTargets", MaxCapacity=9),
            ),
            (
                "warn",
                "suspended: DynamicScalingInSuspended",
                first("ScalableTargets", SuspendedState={"DynamicScalingInSuspended": True}),
            ),
        )
    ),
    fails(
        "LLV405",
        "TargetValue is 9000, the template says 5400",
        DescribeScalingPolicies=nested(
            "ScalingPolicies", 0, "TargetTrackingScalingPolicyConfiguration", TargetValue=9000.0
        ),
    ),
    fails(
        "LLV405",
        "ScaleOutCooldown is 900, the template says 60",
        "put-scaling-policy",
        '"TargetValue": 5400',
        DescribeScalingPolicies=nested(
            "ScalingPolicies", 0, "TargetTrackingScalingPolicyConfiguration", ScaleOutCooldown=900
        ),
    ),
    fails("LLV405", "is missing", DescribeScalingPolicies=answer(ScalingPolicies=[])),
    warns("LLV405", "not in the template", GetTemplate=template(without_scaling)),
    passes("LLV406", "blue/green", "RollbackAlarms"),
    fails(
        "LLV406",
        "WaitIntervalInSeconds is 0, the template says 300",
        DescribeEndpoint=nested(
            "LastDeploymentConfig",
            "BlueGreenUpdatePolicy",
            "TrafficRoutingConfiguration",
            WaitIntervalInSeconds=0,
        ),
    ),
    fails(
        "LLV406",
        "does not roll back",
        DescribeEndpoint=nested("LastDeploymentConfig", AutoRollbackConfiguration={}),
    ),
    unknown("LLV406", "returns no deployment", DescribeEndpoint=answer(LastDeploymentConfig={})),
    # --- what an update that SageMaker rolled back leaves
    *(passes(check, "LowLatencyEndpoint-") for check in ("LLV407", "LLV409")),
    *(
        fails(check, *words, DescribeEndpoint=answer(EndpointConfigName="former"))
        for check, words in (
            ("LLV407", ("former serves, the stack has lowlatencyendpoint-", "deploy")),
            ("LLV409", ("former, the configuration that serves, is deleted", "endpoint_name")),
        )
    ),
    fails(
        "LLV407",
        "rolled the last update back: out of capacity",
        "Fix the cause in the reason",
        DescribeEndpoint=answer(EndpointConfigName="former", FailureReason="out of capacity"),
    ),
    fails(
        "LLV407",
        "primary: DesiredWeight is 0, the template says 1",
        "VariantName=primary,DesiredWeight=1",
        DescribeEndpoint=first("ProductionVariants", DesiredWeight=0.0),
    ),
    passes("LLV407", DescribeEndpoint=first("ProductionVariants", DesiredInstanceCount=12)),
    unknown(
        "LLV407",
        "no endpoint configuration of its own",
        GetTemplate=stated("AWS::SageMaker::Endpoint", EndpointConfigName={"Ref": "Parameter"}),
    ),
    passes("LLV408", "no FailureReason"),
    fails(
        "LLV408",
        "InService",
        "out of capacity",
        DescribeEndpoint=answer(FailureReason="out of capacity"),
    ),
    # --- alarms
    passes("LLV501", "alarms as stated"),
    fails(
        "LLV501",
        "actions are off",
        DescribeAlarms=alarms("ModelLatency", ActionsEnabled=False, AlarmActions=[TOPIC]),
    ),
    passes("LLV502", "160 ms"),
    *(
        case(status, check, words, DescribeAlarms=change)
        for check, status, words, change in (
            ("LLV501", "fail", "Threshold is 900000, the template says 160000", SLOWER),
            ("LLV501", "fail", "is gone", without_alarm),
            ("LLV501", "fail", "Composite", composite(None)),
            ("LLV501", "fail", "Composite", composite({"ActionsEnabled": False})),
            (
                "LLV501",
                "warn",
                "Composite",
                composite({"ActionsEnabled": False, "AlarmActions": []}),
            ),
            ("LLV501", "warn", "actions are off", alarms("ModelLatency", ActionsEnabled=False)),
            ("LLV502", "fail", "above 900 ms, the plan says 160 ms", SLOWER),
            ("LLV502", "warn", "no alarm watches it", without_alarm),
        )
    ),
    passes(
        "LLV502",
        "above 180 ms, stated in the settings",
        GetTemplate=stated("ModelLatency", Threshold=180000),
        DescribeAlarms=alarms("ModelLatency", Threshold=180000.0),
    ),
    warns("LLV503", "none of the", "Send requests", GetMetricData=partial(data, metrics=0)),
    passes("LLV503", "alarms have had data", GetMetricData=data),
    warns("LLV503", "1 of ", "have data; not", GetMetricData=partial(data, metrics=1)),
    warns(
        "LLV503",
        "is in alarm: too slow",
        GetMetricData=data,
        DescribeAlarms=alarms("ModelLatency", StateValue="ALARM", StateReason="too slow"),
    ),
    passes("LLV503", "alarms have had data", GetMetricData=data, DescribeAlarms=deploying),
    fails(
        "LLV503",
        "for 160 ms it is 160000",
        "CloudWatch counts latencies in microseconds",
        GetMetricData=seen(40_000.0),
        DescribeAlarms=alarms("ModelLatency", Threshold=160.0),
    ),
    fails(
        "LLV503",
        "published in Microseconds, not in Milliseconds",
        GetMetricData=data,
        DescribeAlarms=alarms("ModelLatency", Unit="Milliseconds"),
    ),
    fails(
        "LLV503",
        "against a target of 5,400 for 40 min",
        "Target tracking acts three minutes after",
        GetMetricData=seen(40_000.0),
    ),
    # What else is found, test_query_alarm_checks.py asks a server that has metrics.
    unknown("LLV504", "cannot be told", **asking("a > 1 or b > 1")),
]


def run(aws: LocalAws, case: Case, *, live: bool = False) -> tuple[Report, Tampered]:
    client = Tampered(aws, case.changes, live=live)
    return run_verification(STACK, client, REGION, machine=case.machine), client


@pytest.mark.parametrize("case", CASES, ids=str)
def test_check(shipped: LocalAws, case: Case) -> None:
    report, _ = run(shipped, case)
    results = [each for each in report.results if each.id == case.check]
    assert_told(results, case.status, case.words)


PASSING = [case for case in CASES if case.status == "pass"]


def test_every_check_has_cases_that_pass_and_that_do_not() -> None:
    ids = {each.id for each in checks("LLV")} - {"LLV504"}
    assert ids == {case.check for case in PASSING}
    assert ids == {case.check for case in CASES if case.status in ("fail", "warn")}


def test_what_is_refused_is_unknown_and_no_pass_is_won_by_it(shipped: LocalAws) -> None:
    everything = {**INSIDE, "cloudwatch.GetMetricData": data}
    here = machine(["10.0.0.10"], zone="use1-az1")
    healthy, client = run(shipped, Case("", "", (), everything, here))
    assert healthy.counts == {**healthy.counts, "warn": 0, "fail": 0, "unknown": 0}
    passing = [(each.id, each.subject) for each in healthy.results]
    for operation in dict.fromkeys(client.asked):
        refused, _ = run(shipped, Case("", "", (), {**everything, operation: REFUSED}, here))
        unknowns = [each for each in refused.results if each.status == "unknown"]
        assert unknowns, operation
        assert not [each for each in refused.results if each.status == "fail"], operation
        assert all(
            (each.id, each.subject) in passing for each in refused.results if each.status == "pass"
        ), operation
        # No check goes missing: what was told before is told, or is unknown.
        told = {check for check, _ in passing}
        assert {each.id for each in refused.results} >= told, operation
        # One that did not apply may not be able to tell that any more.
        others = [each.status for each in refused.results if each.id not in told]
        assert set(others) <= {"unknown"}, operation


def test_the_shipped_stack_from_outside_has_only_what_cannot_be_seen(shipped: LocalAws) -> None:
    report, _ = run(shipped, Case(changes={"cloudwatch.GetMetricData": data}))
    assert {each.id for each in report.results if each.status != "pass"} == {"LLV301", "LLV302"}
    assert report.zones["us-east-1b"] == "use1-az1"


def test_a_change_by_hand_is_found(shipped: LocalAws) -> None:
    scaling = shipped.client("application-autoscaling")
    (target,) = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    where = {key: target[key] for key in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
    try:
        scaling.register_scalable_target(**where, MinCapacity=1, MaxCapacity=3)
        report, _ = run(shipped, Case(), live=True)
        least, most = (each for each in report.results if each.status == "fail")
        assert (least.id, most.id) == ("LLV405", "LLV405")
        assert "MinCapacity is 1" in least.evidence
        assert "MaxCapacity is 3" in most.evidence
        assert report.exit_status() == 1
    finally:
        scaling.register_scalable_target(
            **where, MinCapacity=target["MinCapacity"], MaxCapacity=target["MaxCapacity"]
        )
    report, _ = run(shipped, Case(), live=True)
    assert report.exit_status() == 0


def test_zonal_names_are_told_from_the_regional_and_the_private_one() -> None:
    names = [
        "vpce-0a1-b2c3.runtime.sagemaker.us-east-1.vpce.amazonaws.com",
        "vpce-0a1-b2c3-us-east-1a.runtime.sagemaker.us-east-1.vpce.amazonaws.com",
        "vpce-0a1-b2c3-us-west-2-lax-1a.runtime.sagemaker.us-west-2.vpce.amazonaws.com",
        RUNTIME,
    ]
    found = zonal_names(
        {"VpcEndpointId": "vpce-0a1", "DnsEntries": [{"DnsName": name} for name in names]}
    )
    assert found == {"us-east-1a": names[1], "us-west-2-lax-1a": names[2]}


def test_a_name_that_is_left_alone_is_not_resolved(shipped: LocalAws) -> None:
    alone = linked(
        "LLV301",
        "",
        by=link(PrivateDnsEnabled=False),
        machine=machine(["203.0.113.7"]),
        GetTemplate=NO_PRIVATE_DNS,
        DescribeNetworkInterfaces=interfaces,
    )
    report, _ = run(shipped, alone)
    assert [each for each in report.results if each.id == "LLV301"] == []
