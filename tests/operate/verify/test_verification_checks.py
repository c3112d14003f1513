"""Each check after a deploy: the shipped stack as it is, with one answer changed, or refused."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from local_sagemaker import LocalAws
from local_sagemaker.cloudwatch.state import state_at
from local_sagemaker.promql.series import SeriesStore
from low_latency_endpoint.client.client_zone import ClientZone
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.operate.checking.checks import Report, checks
from low_latency_endpoint.operate.verify import Machine, run_verification
from low_latency_endpoint.operate.verify.path_checks import zonal_names
from tests.operate.preflight.fake_aws import REFUSED
from tests.operate.verify.conftest import NAME, STACK
from tests.operate.verify.tampered import Change, Tampered

ACCOUNT, REGION = "123456789012", "us-east-1"
RUNTIME = f"runtime.sagemaker.{REGION}.amazonaws.com"

# The interface endpoint's addresses, as the changed answers give them: one in each client zone.
ADDRESSES = {"10.0.0.10": f"{REGION}b", "10.0.1.10": f"{REGION}c"}
OWN = "10.0.0.99"


def nowhere(name: str) -> Sequence[str]:
    return ["203.0.113.7"]


def no_tls(host: str) -> Sequence[str]:
    raise AssertionError("nothing may be connected to from outside")


OUTSIDE = Machine(
    resolve=nowhere, own_address=lambda: "192.168.1.5", client_zone=lambda: None, tls_names=no_tls
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


def link(change: Any) -> Change:
    """Change the runtime's interface endpoint."""

    def changed(parsed: dict[str, Any]) -> None:
        for each in parsed["VpcEndpoints"]:
            if each["VpcEndpointType"] == "Interface":
                each.setdefault("NetworkInterfaceIds", ["eni-0123456789abcdef0"])
                change(each)

    return changed


def each_variant(place: str, **changes: Any) -> Change:
    def changed(parsed: dict[str, Any]) -> None:
        for each in parsed[place]:
            each.update(changes)

    return changed


def alarms(metric: str, **changes: Any) -> Change:
    def changed(parsed: dict[str, Any]) -> None:
        for each in parsed["MetricAlarms"]:
            if each.get("MetricName") == metric:
                each.update(changes)

    return changed


def without_alarm(metric: str) -> Change:
    def changed(parsed: dict[str, Any]) -> None:
        parsed["MetricAlarms"] = [
            each for each in parsed["MetricAlarms"] if each.get("MetricName") != metric
        ]

    return changed


def deploying(parsed: dict[str, Any]) -> None:
    """One alarm compares the new fleet with the whole endpoint, and is on."""
    changed = next(
        each for each in parsed["MetricAlarms"] if each.get("MetricName") == "OverheadLatency"
    )
    plain = {
        "Namespace": "AWS/SageMaker",
        "MetricName": "Invocations",
        "Dimensions": changed["Dimensions"],
    }
    new = {
        **plain,
        "Dimensions": [
            *changed["Dimensions"],
            {"Name": "EndpointConfigName", "Value": "sentiment-2"},
        ],
    }
    del changed["MetricName"], changed["Namespace"], changed["Dimensions"]
    changed.update(
        StateValue="ALARM",
        StateReason="both take requests",
        Metrics=[
            {"Id": "new", "MetricStat": {"Metric": new, "Period": 60, "Stat": "Sum"}},
            {"Id": "whole", "MetricStat": {"Metric": plain, "Period": 60, "Stat": "Sum"}},
        ],
    )


def data(parsed: dict[str, Any]) -> None:
    for each in parsed["MetricDataResults"]:
        each["Values"] = [1.0]


def no_data(parsed: dict[str, Any]) -> None:
    for each in parsed["MetricDataResults"]:
        each["Values"] = []


def some_data(parsed: dict[str, Any]) -> None:
    no_data(parsed)
    parsed["MetricDataResults"][0]["Values"] = [1.0]


def policy(*statements: Mapping[str, Any]) -> Change:
    return link(
        lambda each: each.update(PolicyDocument=json.dumps({"Statement": list(statements)}))
    )


def ingress(**rule: Any) -> Change:
    """What the interface endpoint's group lets in."""

    def changed(parsed: dict[str, Any]) -> None:
        for each in parsed["SecurityGroups"]:
            each["IpPermissions"] = (
                [{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, **rule}] if rule else []
            )

    return changed


def stack_status(status: str) -> Change:
    return lambda parsed: parsed["Stacks"][0].update(StackStatus=status)


def template(change: Any) -> Change:
    """Change the template's resources."""

    def changed(parsed: dict[str, Any]) -> None:
        body = parsed["TemplateBody"]
        body = json.loads(body) if isinstance(body, str) else dict(body)
        change(body["Resources"])
        parsed["TemplateBody"] = json.dumps(body)

    return changed


GAUGE = 'max(avg_over_time({"vllm:x"}[300s]))'


def asking(query: str, data: float | None = None) -> dict[str, Change]:
    """Every alarm of the stack asks this, by the template and by CloudWatch, which has the data."""
    criteria = {"PromQLCriteria": {"Query": query}}

    def in_template(resources: dict[str, Any]) -> None:
        for each in resources.values():
            if each["Type"] == "AWS::CloudWatch::Alarm":
                each["Properties"] = {"EvaluationCriteria": criteria}

    def in_cloudwatch(parsed: dict[str, Any]) -> None:
        for each in parsed["MetricAlarms"]:
            each["EvaluationCriteria"] = criteria
        if data is not None:
            cloudwatch = state_at((ACCOUNT, REGION))
            cloudwatch.enrichment.needed = False
            cloudwatch.series.put("vllm:x", {}, time.time() - 1, data)

    return {
        "cloudformation.GetTemplate": template(in_template),
        "cloudwatch.DescribeAlarms": in_cloudwatch,
    }


def without_plan(resources: dict[str, Any]) -> None:
    for each in resources.values():
        each.pop("Metadata", None)


def other_zone(parsed: dict[str, Any]) -> None:
    """The second zone's subnets lie in a third zone."""
    for each in parsed["Subnets"]:
        if each["AvailabilityZoneId"] == "use1-az2":
            each.update(AvailabilityZone=f"{REGION}f", AvailabilityZoneId="use1-az5")


def stated_link(**changes: Any) -> Change:
    """Change what the template states of the runtime's interface endpoint."""

    def changed(resources: dict[str, Any]) -> None:
        for each in resources.values():
            if each.get("Properties", {}).get("VpcEndpointType") == "Interface":
                each["Properties"].update(changes)

    return template(changed)


def without_private_dns(each: dict[str, Any]) -> None:
    each.update(PrivateDnsEnabled=False)


def beside_another(parsed: dict[str, Any]) -> None:
    """Without private DNS, and somebody else's endpoint has it."""
    own = [each for each in parsed["VpcEndpoints"] if each["VpcEndpointType"] == "Interface"]
    parsed["VpcEndpoints"][:0] = [
        {**each, "VpcEndpointId": "vpce-0fedcba9876543210", "State": "pending"} for each in own
    ]
    for each in own:
        without_private_dns(each)


NO_PRIVATE_DNS = {"cloudformation.GetTemplate": stated_link(PrivateDnsEnabled=False)}
WIDE = {
    "cloudformation.GetTemplate": stated_link(
        PolicyDocument={
            "Statement": [
                {
                    "Effect": "Allow",
                    "Resource": [
                        {
                            "Fn::Join": [
                                "",
                                [
                                    "arn:aws:sagemaker:us-east-1:",
                                    {"Ref": "AWS::AccountId"},
                                    ":endpoint/*",
                                ],
                            ]
                        }
                    ],
                }
            ]
        }
    )
}


def stated_threshold(resources: dict[str, Any]) -> None:
    for each in resources.values():
        if each.get("Properties", {}).get("MetricName") == "ModelLatency":
            each["Properties"]["Threshold"] = 180000


def untrusted(host: str) -> Sequence[str]:
    raise ssl.SSLCertVerificationError(1, "hostname mismatch")


def unanswered(host: str) -> Sequence[str]:
    raise TimeoutError("timed out")


ALLOW = {"Effect": "Allow", "Principal": "*", "Action": "sagemaker:InvokeEndpoint"}
MINE = {
    **ALLOW,
    "Resource": f"arn:aws:sagemaker:us-east-1:123456789012:endpoint/{NAME}",
    "Condition": {"StringEquals": {"aws:PrincipalAccount": "123456789012"}},
}
ROLE = "arn:aws:iam::123456789012:role/somebody-else"
INSIDE = {
    "ec2.DescribeVpcEndpoints": link(lambda each: None),
    "ec2.DescribeNetworkInterfaces": interfaces,
}
SCALING = "application-autoscaling.Describe"


@dataclass(frozen=True)
class Case:
    """What is changed, and what must come out of one check."""

    check: str
    status: str
    words: tuple[str, ...] = ()
    changes: Mapping[str, Change] = field(default_factory=dict)
    machine: Machine = OUTSIDE

    def __str__(self) -> str:
        return "-".join((self.check, self.status, *self.words[:1])).replace(" ", "_")[:50]


CASES = [
    Case("LLV101", "pass", ("CREATE_COMPLETE",)),
    Case(
        "LLV101",
        "warn",
        ("rolled back",),
        {"cloudformation.DescribeStacks": stack_status("UPDATE_ROLLBACK_COMPLETE")},
    ),
    Case(
        "LLV101",
        "fail",
        ("UPDATE_IN_PROGRESS",),
        {"cloudformation.DescribeStacks": stack_status("UPDATE_IN_PROGRESS")},
    ),
    Case("LLV102", "pass", (NAME,)),
    Case("LLV102", "unknown", ("no plan",), {"cloudformation.GetTemplate": template(without_plan)}),
    Case(
        "LLV102",
        "warn",
        ("no SageMaker endpoint",),
        {"cloudformation.GetTemplate": template(lambda resources: resources.clear())},
    ),
    # --- zones
    Case("LLV201", "pass", ("use1-az1, use1-az2, the callers' zones",)),
    Case(
        "LLV201",
        "fail",
        ("has no private DNS",),
        {"ec2.DescribeVpcEndpoints": link(lambda each: each.update(PrivateDnsEnabled=False))},
    ),
    Case(
        "LLV201",
        "pass",
        ("no private DNS, as stated",),
        {**NO_PRIVATE_DNS, "ec2.DescribeVpcEndpoints": link(without_private_dns)},
    ),
    Case(
        "LLV201",
        "pass",
        ("no private DNS, as stated",),
        {**NO_PRIVATE_DNS, "ec2.DescribeVpcEndpoints": beside_another},
    ),
    Case(
        "LLV201",
        "fail",
        ("pending",),
        {"ec2.DescribeVpcEndpoints": link(lambda each: each.update(State="pending"))},
    ),
    Case(
        "LLV201",
        "fail",
        ("no interface endpoint",),
        {"ec2.DescribeVpcEndpoints": link(lambda each: each.update(State="deleted"))},
    ),
    Case("LLV201", "fail", ("not in use1-az2",), {"ec2.DescribeSubnets": other_zone}),
    Case("LLV201", "unknown", ("no plan",), {"cloudformation.GetTemplate": template(without_plan)}),
    Case("LLV202", "pass", ("the callers' zones",)),
    Case("LLV202", "fail", ("not in use1-az2",), {"ec2.DescribeSubnets": other_zone}),
    Case(
        "LLV202",
        "warn",
        ("not in both",),
        {
            "ec2.DescribeVpcEndpoints": link(
                lambda each: each.update(SubnetIds=each["SubnetIds"][:1])
            )
        },
    ),
    Case(
        "LLV202",
        "fail",
        ("in no VPC",),
        {"sagemaker.DescribeModel": lambda parsed: parsed.pop("VpcConfig")},
    ),
    # --- the way of a call
    Case("LLV301", "unknown", ("not inside the VPC",)),
    Case(
        "LLV301",
        "pass",
        (RUNTIME, "10.0.0.10", "this machine's zone"),
        INSIDE,
        machine(["10.0.0.10"]),
    ),
    Case(
        "LLV301", "pass", ("this machine's zone",), INSIDE, machine(["10.0.0.10"], zone="use1-az1")
    ),
    Case(
        "LLV301",
        "warn",
        ("this machine is in us-east-1b", "ZonalUrl"),
        INSIDE,
        machine(["10.0.0.10", "10.0.1.10"]),
    ),
    Case("LLV301", "fail", ("each call changes the zone",), INSIDE, machine(["10.0.1.10"])),
    Case(
        "LLV301", "unknown", ("LOW_LATENCY_CLIENT_ZONE",), INSIDE, machine(["10.0.0.10"], zone=None)
    ),
    Case("LLV301", "fail", ("203.0.113.7, none of them",), INSIDE, machine(["203.0.113.7"])),
    Case("LLV301", "fail", ("resolves to nothing",), INSIDE, machine([])),
    # An office whose range is the VPC's own: no network interface has the address.
    Case(
        "LLV301",
        "unknown",
        ("not inside the VPC",),
        {
            "ec2.DescribeVpcEndpoints": link(lambda each: each.update(NetworkInterfaceIds=[])),
            "ec2.DescribeNetworkInterfaces": lambda parsed: parsed.update(NetworkInterfaces=[]),
        },
        machine(["203.0.113.7"]),
    ),
    Case("LLV302", "unknown", ("not inside the VPC",)),
    Case("LLV302", "pass", ("certificate for *.runtime",), INSIDE, machine(["10.0.0.10"])),
    Case("LLV302", "pass", ("certificate for",), INSIDE, machine(["10.0.0.10"], own=None)),
    Case("LLV302", "fail", ("hostname mismatch",), INSIDE, machine(["10.0.0.10"], tls=untrusted)),
    Case(
        "LLV302", "fail", ("timed out", "port 443"), INSIDE, machine(["10.0.0.10"], tls=unanswered)
    ),
    Case("LLV303", "pass", ("10.0.0.0/16",)),
    Case("LLV303", "fail", ("lets nobody in",), {"ec2.DescribeSecurityGroups": ingress()}),
    Case(
        "LLV303",
        "fail",
        ("lets nobody in",),
        {
            "ec2.DescribeSecurityGroups": ingress(
                FromPort=8443, ToPort=8443, IpRanges=[{"CidrIp": "10.0.0.0/16"}]
            )
        },
    ),
    Case(
        "LLV303",
        "warn",
        ("0.0.0.0/0",),
        {"ec2.DescribeSecurityGroups": ingress(IpRanges=[{"CidrIp": "0.0.0.0/0"}])},
    ),
    Case(
        "LLV303",
        "warn",
        ("not the client zones' own subnets",),
        {"ec2.DescribeSecurityGroups": ingress(IpRanges=[{"CidrIp": "10.9.0.0/16"}])},
    ),
    Case(
        "LLV303",
        "pass",
        ("sg-0123456789abcdef0",),
        {
            "ec2.DescribeSecurityGroups": ingress(
                UserIdGroupPairs=[{"GroupId": "sg-0123456789abcdef0"}]
            )
        },
    ),
    Case("LLV304", "pass", ("nothing else",)),
    Case(
        "LLV304",
        "fail",
        ("does not let", NAME),
        {
            "ec2.DescribeVpcEndpoints": policy(
                {**ALLOW, "Resource": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/other"}
            )
        },
    ),
    Case(
        "LLV304",
        "warn",
        ("other endpoints and other accounts' principals",),
        {"ec2.DescribeVpcEndpoints": policy({**ALLOW, "Resource": "*"})},
    ),
    Case(
        "LLV304",
        "warn",
        ("other endpoints too",),
        {
            "ec2.DescribeVpcEndpoints": policy(
                {**ALLOW, "Resource": "*", "Principal": {"AWS": "arn:aws:iam::123456789012:root"}}
            )
        },
    ),
    Case(
        "LLV304",
        "unknown",
        ("aws:SourceVpc",),
        {
            "ec2.DescribeVpcEndpoints": policy(
                {
                    **ALLOW,
                    "Resource": "*",
                    "Condition": {"StringEquals": {"aws:SourceVpc": "vpc-1"}},
                }
            )
        },
    ),
    Case(
        "LLV304",
        "pass",
        ("the account's other endpoints, as stated",),
        {
            **WIDE,
            "ec2.DescribeVpcEndpoints": policy(
                {**MINE, "Resource": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/*"}
            ),
        },
    ),
    Case(
        "LLV304",
        "warn",
        ("and other accounts' principals too",),
        {**WIDE, "ec2.DescribeVpcEndpoints": policy({**ALLOW, "Resource": "*"})},
    ),
    # Data perimeters: ordinary statements, whose keys only the request itself knows.
    *(
        Case(
            "LLV304",
            "unknown",
            (f"{operator} {key}",),
            {
                "ec2.DescribeVpcEndpoints": policy(
                    MINE,
                    {
                        **ALLOW,
                        "Effect": "Deny",
                        "Action": "*",
                        "Resource": "*",
                        "Condition": {operator: {key: value}},
                    },
                )
            },
        )
        for operator, key, value in (
            ("StringNotEquals", "aws:PrincipalOrgID", "o-another"),
            ("StringNotEqualsIfExists", "aws:SourceVpc", "vpc-other"),
            ("Bool", "aws:SecureTransport", "false"),
        )
    ),
    *(
        Case(
            "LLV304",
            "pass",
            ("nothing else",),
            {
                "ec2.DescribeVpcEndpoints": policy(
                    MINE,
                    {
                        **ALLOW,
                        "Effect": "Deny",
                        "Resource": "*",
                        "Condition": {"StringNotEquals": {key: "123456789012"}},
                    },
                )
            },
        )
        for key in ("aws:PrincipalAccount", "aws:ResourceAccount")
    ),
    Case(
        "LLV304",
        "fail",
        ("does not let",),
        {
            "ec2.DescribeVpcEndpoints": policy(
                MINE,
                {
                    **ALLOW,
                    "Effect": "Deny",
                    "Resource": "*",
                    "Condition": {
                        "StringNotEquals": {
                            "aws:PrincipalAccount": ["210987654321", "111122223333"]
                        }
                    },
                },
            )
        },
    ),
    *(
        Case("LLV304", "unknown", (ROLE,), {"ec2.DescribeVpcEndpoints": policy(*statements)})
        for statements in (
            [{**MINE, "Principal": {"AWS": ROLE}}],
            [MINE, {**ALLOW, "Effect": "Deny", "Resource": "*", "Principal": {"AWS": ROLE}}],
        )
    ),
    Case(
        "LLV304",
        "unknown",
        ("lets", "what else", "aws:SourceVpc"),
        {
            "ec2.DescribeVpcEndpoints": policy(
                MINE,
                {**ALLOW, "Resource": "*", "Condition": {"StringEquals": {"aws:SourceVpc": "v"}}},
            )
        },
    ),
    Case(
        "LLV304",
        "fail",
        ("does not let",),
        {
            "ec2.DescribeVpcEndpoints": policy(
                {**ALLOW, "Resource": "*"}, {**ALLOW, "Effect": "Deny", "Resource": f"*/{NAME}"}
            )
        },
    ),
    # --- the fleet
    Case("LLV401", "pass", ("InService",)),
    Case(
        "LLV401",
        "fail",
        ("Failed: out of capacity",),
        {
            "sagemaker.DescribeEndpoint": lambda parsed: parsed.update(
                EndpointStatus="Failed", FailureReason="out of capacity"
            )
        },
    ),
    Case("LLV402", "pass", ("ml.m5.12xlarge",)),
    Case(
        "LLV402",
        "fail",
        ("ml.m5.large, the plan says ml.m5.12xlarge",),
        {
            "sagemaker.DescribeEndpointConfig": each_variant(
                "ProductionVariants", InstanceType="ml.m5.large"
            )
        },
    ),
    Case("LLV403", "pass", ("LEAST_OUTSTANDING_REQUESTS",)),
    Case(
        "LLV403",
        "fail",
        ("RANDOM, the plan says LEAST",),
        {"sagemaker.DescribeEndpointConfig": each_variant("ProductionVariants", RoutingConfig={})},
    ),
    Case("LLV403", "unknown", ("no plan",), {"cloudformation.GetTemplate": template(without_plan)}),
    Case("LLV404", "pass", ("8 of 8 wanted", "2 to 16")),
    Case(
        "LLV404",
        "warn",
        ("6 of 8", "capacity"),
        {"sagemaker.DescribeEndpoint": each_variant("ProductionVariants", CurrentInstanceCount=6)},
    ),
    Case(
        "LLV404",
        "fail",
        ("20 of 20",),
        {
            "sagemaker.DescribeEndpoint": each_variant(
                "ProductionVariants", CurrentInstanceCount=20, DesiredInstanceCount=20
            )
        },
    ),
    Case("LLV405", "pass", ("2 to 16", "7800")),
    Case(
        "LLV405",
        "fail",
        ("not registered",),
        {SCALING + "ScalableTargets": lambda parsed: parsed.update(ScalableTargets=[])},
    ),
    Case(
        "LLV405",
        "fail",
        ("MaxCapacity is 9, the template says 16",),
        {SCALING + "ScalableTargets": each_variant("ScalableTargets", MaxCapacity=9)},
    ),
    Case(
        "LLV405",
        "warn",
        ("suspended: DynamicScalingInSuspended",),
        {
            SCALING + "ScalableTargets": each_variant(
                "ScalableTargets", SuspendedState={"DynamicScalingInSuspended": True}
            )
        },
    ),
    Case(
        "LLV405",
        "fail",
        ("aims at 9000, the plan says 7800",),
        {
            SCALING + "ScalingPolicies": lambda parsed: parsed["ScalingPolicies"][0][
                "TargetTrackingScalingPolicyConfiguration"
            ].update(TargetValue=9000.0)
        },
    ),
    Case(
        "LLV405",
        "fail",
        ("is missing",),
        {SCALING + "ScalingPolicies": lambda parsed: parsed.update(ScalingPolicies=[])},
    ),
    Case(
        "LLV405",
        "warn",
        ("does not state",),
        {
            "cloudformation.GetTemplate": template(
                lambda resources: [
                    resources.pop(key)
                    for key in list(resources)
                    if "ApplicationAutoScaling" in resources[key]["Type"]
                ]
            )
        },
    ),
    Case("LLV406", "pass", ("blue/green", "RollbackAlarms")),
    Case(
        "LLV406",
        "fail",
        ("WaitIntervalInSeconds is 0, the template says 300",),
        {
            "sagemaker.DescribeEndpoint": lambda parsed: parsed["LastDeploymentConfig"][
                "BlueGreenUpdatePolicy"
            ]["TrafficRoutingConfiguration"].update(WaitIntervalInSeconds=0)
        },
    ),
    Case(
        "LLV406",
        "fail",
        ("does not roll back",),
        {
            "sagemaker.DescribeEndpoint": lambda parsed: parsed["LastDeploymentConfig"].pop(
                "AutoRollbackConfiguration"
            )
        },
    ),
    Case(
        "LLV406",
        "unknown",
        ("tells no deployment",),
        {"sagemaker.DescribeEndpoint": lambda parsed: parsed.pop("LastDeploymentConfig")},
    ),
    # --- what an update that SageMaker rolled back leaves
    Case("LLV407", "pass", ("LowLatencyEndpoint-",)),
    Case(
        "LLV407",
        "fail",
        ("former serves, the stack has lowlatencyendpoint-", "deploy"),
        {"sagemaker.DescribeEndpoint": lambda parsed: parsed.update(EndpointConfigName="former")},
    ),
    Case(
        "LLV407",
        "unknown",
        ("no endpoint configuration of its own",),
        {
            "cloudformation.GetTemplate": template(
                lambda resources: [
                    each["Properties"].update(EndpointConfigName={"Ref": "Parameter"})
                    for each in resources.values()
                    if each["Type"] == "AWS::SageMaker::Endpoint"
                ]
            )
        },
    ),
    Case("LLV408", "pass", ("no FailureReason",)),
    Case(
        "LLV408",
        "fail",
        ("InService", "out of capacity"),
        {
            "sagemaker.DescribeEndpoint": lambda parsed: parsed.update(
                FailureReason="out of capacity"
            )
        },
    ),
    Case("LLV409", "pass", ("LowLatencyEndpoint-",)),
    Case(
        "LLV409",
        "fail",
        ("former is deleted", "endpoint_name"),
        {"sagemaker.DescribeEndpoint": lambda parsed: parsed.update(EndpointConfigName="former")},
    ),
    # --- alarms
    Case("LLV501", "pass", ("alarms as stated",)),
    Case(
        "LLV501",
        "fail",
        ("Threshold is 900000, the template says 160000",),
        {"cloudwatch.DescribeAlarms": alarms("ModelLatency", Threshold=900000.0)},
    ),
    Case(
        "LLV501",
        "fail",
        ("is gone",),
        {"cloudwatch.DescribeAlarms": without_alarm("OverheadLatency")},
    ),
    Case(
        "LLV501",
        "warn",
        ("actions are off",),
        {"cloudwatch.DescribeAlarms": alarms("ModelLatency", ActionsEnabled=False)},
    ),
    Case("LLV502", "pass", ("160 ms",)),
    Case(
        "LLV502",
        "fail",
        ("above 900 ms, the plan says 160 ms",),
        {"cloudwatch.DescribeAlarms": alarms("ModelLatency", Threshold=900000.0)},
    ),
    Case(
        "LLV502",
        "pass",
        ("above 180 ms, stated in the settings",),
        {
            "cloudformation.GetTemplate": template(stated_threshold),
            "cloudwatch.DescribeAlarms": alarms("ModelLatency", Threshold=180000.0),
        },
    ),
    Case(
        "LLV502",
        "warn",
        ("no alarm watches it",),
        {"cloudwatch.DescribeAlarms": without_alarm("OverheadLatency")},
    ),
    Case("LLV502", "unknown", ("no plan",), {"cloudformation.GetTemplate": template(without_plan)}),
    Case("LLV503", "warn", ("none of the", "Send requests"), {"cloudwatch.GetMetricData": no_data}),
    Case("LLV503", "pass", ("alarms have data",), {"cloudwatch.GetMetricData": data}),
    Case("LLV503", "warn", ("1 of ", "have data; not"), {"cloudwatch.GetMetricData": some_data}),
    Case(
        "LLV503",
        "warn",
        ("is in alarm: too slow",),
        {
            "cloudwatch.GetMetricData": data,
            "cloudwatch.DescribeAlarms": alarms(
                "ModelLatency", StateValue="ALARM", StateReason="too slow"
            ),
        },
    ),
    Case(
        "LLV503",
        "pass",
        ("alarms have data",),
        {"cloudwatch.GetMetricData": data, "cloudwatch.DescribeAlarms": deploying},
    ),
    # What is found, and why nothing is, test_query_alarm_checks.py asks a server that has metrics.
    Case("LLV504", "pass", ("finds 1 now",), asking(f"({GAUGE}) > 0", data=1.0)),
    Case("LLV504", "fail", ("enrichment is stopped",), asking(f"({GAUGE}) > 1")),
    Case("LLV504", "unknown", ("cannot be told",), asking("a > 1 or b > 1")),
]


def run(aws: LocalAws, case: Case, *, live: bool = False) -> tuple[Report, Tampered]:
    client = Tampered(aws, case.changes, live=live)
    return run_verification(STACK, client, REGION, machine=case.machine), client


@pytest.fixture(autouse=True)
def nothing_scraped() -> Iterator[None]:
    yield
    cloudwatch = state_at((ACCOUNT, REGION))
    cloudwatch.enrichment.needed, cloudwatch.series = True, SeriesStore()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_check(shipped: LocalAws, case: Case) -> None:
    report, _ = run(shipped, case)
    results = [each for each in report.results if each.id == case.check]
    of_status = [each for each in results if each.status == case.status]
    assert of_status, [(each.status, each.evidence) for each in results]
    if case.status == "pass":
        assert {each.status for each in results} == {"pass"}, results
    assert any(
        all(word in f"{each.subject} {each.evidence} {each.fix}" for word in case.words)
        for each in of_status
    ), of_status
    for each in results:
        assert bool(each.fix) or each.status in ("pass", "unknown"), each


PASSING = [case for case in CASES if case.status == "pass"]


def test_every_check_has_cases_that_pass_and_that_do_not() -> None:
    ids = {each.id for each in checks("LLV")}
    assert ids == {case.check for case in PASSING}
    assert ids == {case.check for case in CASES if case.status in ("fail", "warn")}


def test_what_is_refused_is_unknown_and_no_pass_is_won_by_it(shipped: LocalAws) -> None:
    everything = {**INSIDE, "cloudwatch.GetMetricData": data}
    here = machine(["10.0.0.10"], zone="use1-az1")
    healthy, client = run(shipped, Case("", "", (), everything, here))
    assert healthy.counts == {**healthy.counts, "warn": 0, "fail": 0, "unknown": 0}
    passes = [(each.id, each.subject) for each in healthy.results]
    for operation in dict.fromkeys(client.asked):
        refused, _ = run(shipped, Case("", "", (), {**everything, operation: REFUSED}, here))
        unknowns = [each for each in refused.results if each.status == "unknown"]
        assert unknowns, operation
        assert not [each for each in refused.results if each.status == "fail"], operation
        assert all(
            (each.id, each.subject) in passes for each in refused.results if each.status == "pass"
        ), operation
        # No check goes missing: what was told before is told, or is unknown.
        told = {check for check, _ in passes}
        assert {each.id for each in refused.results} >= told, operation
        # One that did not apply may not be able to tell that any more.
        others = [each.status for each in refused.results if each.id not in told]
        assert set(others) <= {"unknown"}, operation


def test_the_shipped_stack_from_outside_has_only_what_cannot_be_seen(shipped: LocalAws) -> None:
    report, _ = run(shipped, Case("", "", (), {"cloudwatch.GetMetricData": data}))
    assert {each.id for each in report.results if each.status != "pass"} == {"LLV301", "LLV302"}
    assert report.zones["us-east-1b"] == "use1-az1"


def test_a_change_by_hand_is_found(shipped: LocalAws) -> None:
    scaling = shipped.client("application-autoscaling")
    (target,) = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    where = {key: target[key] for key in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
    try:
        scaling.register_scalable_target(**where, MinCapacity=1, MaxCapacity=3)
        report, _ = run(shipped, Case("", ""), live=True)
        (found,) = [each for each in report.results if each.status == "fail"]
        assert found.id == "LLV405"
        assert "MinCapacity is 1" in found.evidence
        assert report.exit_status() == 1
    finally:
        scaling.register_scalable_target(
            **where, MinCapacity=target["MinCapacity"], MaxCapacity=target["MaxCapacity"]
        )
    report, _ = run(shipped, Case("", ""), live=True)
    assert report.exit_status() == 0


def test_another_configuration_behind_the_stack_s_back_is_found(shipped: LocalAws) -> None:
    sagemaker = shipped.client("sagemaker")
    ours = sagemaker.describe_endpoint(EndpointName=NAME)["EndpointConfigName"]
    stated = sagemaker.describe_endpoint_config(EndpointConfigName=ours)
    variant = stated["ProductionVariants"][0]
    model = sagemaker.describe_model(ModelName=variant["ModelName"])
    sagemaker.create_model(
        ModelName="other",
        ExecutionRoleArn=model["ExecutionRoleArn"],
        PrimaryContainer={**model["PrimaryContainer"], "Environment": {"HF_TASK": "fill-mask"}},
        VpcConfig=model["VpcConfig"],
    )
    sagemaker.create_endpoint_config(
        EndpointConfigName="other", ProductionVariants=[{**variant, "ModelName": "other"}]
    )
    deployment = sagemaker.describe_endpoint(EndpointName=NAME)["LastDeploymentConfig"]
    update = {
        "EndpointName": NAME,
        "RetainAllVariantProperties": True,
        "DeploymentConfig": deployment,
    }
    sagemaker.update_endpoint(EndpointConfigName="other", **update)
    try:
        report, _ = run(shipped, Case("", ""), live=True)
        (found,) = [each for each in report.results if each.status == "fail"]
        assert found.id == "LLV407"
        assert f"other serves, the stack has {ours.lower()}" in found.evidence
        sagemaker.delete_endpoint_config(EndpointConfigName="other")
        report, _ = run(shipped, Case("", ""), live=True)
        assert {each.id for each in report.results if each.status == "fail"} == {"LLV407", "LLV409"}
        assert "LLV401" in {each.id for each in report.results if each.status == "unknown"}
    finally:
        sagemaker.create_endpoint_config(
            EndpointConfigName="other", ProductionVariants=[{**variant, "ModelName": "other"}]
        )
        sagemaker.update_endpoint(EndpointConfigName=ours, **update)
        sagemaker.delete_endpoint_config(EndpointConfigName="other")
        sagemaker.delete_model(ModelName="other")
    report, _ = run(shipped, Case("", ""), live=True)
    assert report.exit_status() == 0


def test_a_stack_that_does_not_exist_is_a_coded_error(shipped: LocalAws) -> None:
    with pytest.raises(ConfigurationError) as caught:
        run_verification("NoSuchStack", shipped.client, REGION, machine=OUTSIDE)
    assert caught.value.code == "LLA103"


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
    changes = {
        **INSIDE,
        **NO_PRIVATE_DNS,
        "ec2.DescribeVpcEndpoints": link(lambda each: each.update(PrivateDnsEnabled=False)),
    }
    report, _ = run(shipped, Case("LLV301", "", (), changes, machine(["203.0.113.7"])))
    assert [each for each in report.results if each.id == "LLV301"] == []
