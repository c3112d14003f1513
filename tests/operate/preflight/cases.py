"""The cases of the checks before a deploy: what is changed, and what must come out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.fake_aws import ACCOUNT, REFUSED, REGION, FakeAws, Refused, filtered, merged
from tests.operate.preflight.world import (
    ADOPTED,
    DEPLOYED,
    ENDPOINT_ARN,
    GROUP,
    KEY,
    LINK,
    ROLE,
    RUNTIME,
    S3_GATEWAY,
    SUBNETS,
    TOPIC,
    VPC,
    WORLD,
    concurrency,
    endpoints,
    in_service,
    link,
    manifest,
    outcomes,
    quotas,
    roles,
    route_table,
    settings_with,
    subnet,
    vpc_attribute,
)

E = "endpoints.sentiment."
LANGUAGE = {
    E + "latency": {"ttft_p95": "500ms", "itl_p95": "50ms"},
    E + "tokens": {"input": 512, "output": 128},
    E + "throughput.concurrency_per_instance": 20,
    E + "alarms": {"tokens": {"server": "vllm"}},
}


def enrichment(status: str) -> dict[str, Any]:
    """CloudWatch's OTel enrichment of the account."""
    return {"cloudwatch.GetOTelEnrichment": {"Status": status}}


NAMES = {"client_zones": {"names": [f"{REGION}a", f"{REGION}b"]}, "network.subnets": None}


WARMED = {E + "warm_up": {"payload": {"text": "hello"}}}
RESERVING = {E + "warm_up": {"payload": {"text": "hello"}, "reserve_concurrency": True}}


def concurrent(quota: int, unreserved: int) -> dict[str, Any]:
    """What Lambda tells of the account's concurrency."""
    return {"lambda.GetAccountSettings": concurrency(quota, unreserved)}


def reserving_stack(*counts: int) -> dict[str, Any]:
    """The deployed stack, with functions that reserve so many executions each."""
    return {
        "cloudformation.GetTemplate": {
            "TemplateBody": json.dumps(
                {
                    "Resources": {
                        f"Function{number}": {
                            "Type": "AWS::Lambda::Function",
                            "Properties": {"ReservedConcurrentExecutions": count},
                        }
                        for number, count in enumerate(counts)
                    }
                }
            )
        }
    }


@dataclass(frozen=True, eq=False)  # each is itself: see run
class Case:
    """What is changed in settings and account, and what must come out."""

    check: str
    status: str
    words: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    aws: Mapping[str, Any] = field(default_factory=dict)
    region: str = REGION
    fetched: Any = None

    def __str__(self) -> str:
        return "-".join((self.check, self.status, *self.words[:1])).replace(" ", "_")[:50]


def stack(status: str, **more: Any) -> dict[str, Any]:
    return {
        "cloudformation.DescribeStacks": {
            "Stacks": [
                {"StackName": "Shop", "StackStatus": status, "CreationTime": "2026-01-01", **more}
            ]
        }
    }


def zones(**states: str) -> dict[str, Any]:
    names = {"use1_az1": "a", "use1_az2": "b"}
    return {
        "ec2.DescribeAvailabilityZones": {
            "AvailabilityZones": [
                {
                    "ZoneName": f"{REGION}{names[zone]}",
                    "ZoneId": zone.replace("_", "-"),
                    "State": state,
                }
                for zone, state in states.items()
            ]
        }
    }


def deployed(**variant: Any) -> dict[str, Any]:
    configuration = DEPLOYED["sagemaker.DescribeEndpointConfig"]
    (before,) = configuration["ProductionVariants"]
    return merged(
        DEPLOYED,
        {
            "sagemaker.DescribeEndpointConfig": {
                **configuration,
                "ProductionVariants": [{**before, **variant}],
            }
        },
    )


def endpoint_status(status: str, **more: Any) -> dict[str, Any]:
    return merged(
        DEPLOYED,
        {
            "sagemaker.DescribeEndpoint": {
                **DEPLOYED["sagemaker.DescribeEndpoint"],
                "EndpointStatus": status,
                **more,
            }
        },
    )


def subnets(**changes: Any) -> dict[str, Any]:
    return {"ec2.DescribeSubnets": {"Subnets": [subnet("use1-az1", **changes), subnet("use1-az2")]}}


def routes(*found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "ec2.DescribeRouteTables": {"RouteTables": [route_table(Routes=list(found))]},
        "ec2.DescribeVpcEndpoints": endpoints(),
    }


def untrusting(params: Mapping[str, Any]) -> Any:
    role = roles(params)["Role"]
    role["AssumeRolePolicyDocument"] = json.dumps(
        {
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": "lambda.amazonaws.com"},
                    "Action": "sts:AssumeRole",
                }
            ]
        }
    )
    return {"Role": role}


def only_model_role(params: Mapping[str, Any]) -> Any:
    return roles(params) if params["RoleName"] == "model-role" else Refused("NoSuchEntity")


DEFAULT_ROUTE = {"DestinationCidrBlock": "0.0.0.0/0"}
OTHER_ACCOUNT = {
    "Account": "210987654321",
    "Arn": "arn:aws:iam::210987654321:user/dev",
    "UserId": "AIDAEXAMPLE",
}
DLC = {
    "dlc": {
        "repository": "huggingface-pytorch-inference",
        "tag": "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04",
    }
}
KEY_STATE = {"KeyMetadata": {"KeyId": "1234abcd", "KeyState": "PendingDeletion"}}
DATA = E + "containers"


def container(**changes: Any) -> list[dict[str, Any]]:
    return [
        {
            "image": {"ecr": {"repository": "team/model", "tag": "1.4"}},
            "data": {"s3": "s3://models/sentiment/model.tar.gz"},
            **changes,
        }
    ]


DATA_KEY = KEY.replace("1234abcd-", "8765dcba-")


def with_key(key: str) -> dict[str, Any]:
    """Model data for which a key is stated."""
    return {DATA: container(data={"s3": "s3://models/sentiment/model.tar.gz", "kms_key_arn": key})}


STATED_KEY = with_key(DATA_KEY)


def encrypted(key: str) -> dict[str, Any]:
    """Model data that a KMS key encrypts, as S3 tells."""
    return {
        "s3.HeadObject": {
            "ContentLength": 268_000_000,
            "ServerSideEncryption": "aws:kms",
            "SSEKMSKeyId": key,
        }
    }


def of_key(name: str, key: str) -> Any:
    """HeadObject, of objects among which a KMS key encrypts one."""

    def answer(params: Mapping[str, Any]) -> Any:
        found: Any = encrypted(key)["s3.HeadObject"]
        return found if params["Key"] == name else {"ContentLength": 1}

    return answer


def managed_by(manager: str) -> dict[str, Any]:
    """Model data that a key encrypts, and who manages the key."""
    metadata = {"KeyId": "8765dcba", "Arn": DATA_KEY, "KeyManager": manager}
    return {**encrypted(DATA_KEY), "kms.DescribeKey": {"KeyMetadata": metadata}}


OTHER_VPC = "vpc-0fedcba9876543210"
FOR_OTHERS = {"private_link": {"hosted_zone_vpc_ids": [OTHER_VPC]}}
LEFT_ALONE = {"private_link": {"private_dns": False}}


def in_vpc(vpc_id: str, answer: Mapping[str, Any], otherwise: Mapping[str, Any]) -> Any:
    """An answer for one VPC, and another for all others; EC2's filter, or Route 53's argument."""

    def answered(params: Mapping[str, Any]) -> Any:
        asked = params.get("VPCId") or next(filtered(params, "vpc-id"))
        return answer if asked == vpc_id else otherwise

    return answered


def hosted_zones(*ids: str, **owner: str) -> dict[str, Any]:
    return {
        "MaxItems": "100",
        "HostedZoneSummaries": [
            {
                "HostedZoneId": zone_id,
                "Owner": owner or {"OwningAccount": ACCOUNT},
                "Name": f"runtime.sagemaker.{REGION}.amazonaws.com.",
            }
            for zone_id in ids
        ],
    }


def resources(logical_id: str = "", **physical: str) -> dict[str, Any]:
    """The stack's resources, by the end of their type; with the logical ID of the one there is."""
    return {
        "cloudformation.ListStackResources": {
            "StackResourceSummaries": [
                {
                    "LogicalResourceId": logical_id or kind.replace("_", ""),
                    "ResourceType": f"AWS::{kind.replace('_', '::')}",
                    "PhysicalResourceId": value,
                    "ResourceStatus": "CREATE_COMPLETE",
                    "LastUpdatedTimestamp": "2026-01-01",
                }
                for kind, value in physical.items()
            ]
        }
    }


def flow_log(**changes: Any) -> dict[str, Any]:
    """A flow log of the VPC, and other endpoints that make it worth reading."""
    return {
        "sagemaker.ListEndpoints": in_service("theirs"),
        "ec2.DescribeFlowLogs": {
            "FlowLogs": [
                {
                    "FlowLogStatus": "ACTIVE",
                    "TrafficType": "ALL",
                    "ResourceId": VPC,
                    "LogDestinationType": "cloud-watch-logs",
                    "LogGroupName": "flows",
                    **changes,
                }
            ]
        },
    }


def flows(*pairs: tuple[str, str]) -> Any:
    """FilterLogEvents: a first page without a match, then a record of each (interface, source)."""

    def answered(params: Mapping[str, Any]) -> Any:
        for address in ("203.0.113.7", "203.0.113.8"):
            assert f'"{address}"' in params["filterPattern"]
        if "nextToken" not in params:
            return {"events": [], "nextToken": "2"}
        return {
            "events": [
                {
                    "message": f"2 {ACCOUNT} {interface} {source} 203.0.113.7 50000 443 6 "
                    "9 900 1 2 ACCEPT OK"
                }
                for interface, source in pairs
            ]
        }

    return answered


INTERFACES = {
    "ec2.DescribeNetworkInterfaces": {
        "NetworkInterfaces": [
            {"NetworkInterfaceId": "eni-1", "Description": "AWS Lambda VPC ENI-shop"},
            {"NetworkInterfaceId": "eni-2", "InterfaceType": "nat_gateway"},
        ]
    }
}

CASES = [
    # --- credentials, region, bootstrap, stack
    Case("LLP101", "pass", ("user/dev",)),
    Case(
        "LLP101",
        "fail",
        ("210987654321", "--profile"),
        aws={"sts.GetCallerIdentity": OTHER_ACCOUNT},
    ),
    Case("LLP101", "unknown", ("sts:GetCallerIdentity",), aws={"sts.GetCallerIdentity": REFUSED}),
    Case("LLP102", "pass", (REGION,)),
    Case("LLP102", "fail", ("eu-west-1", "us-east-1"), region="eu-west-1"),
    Case(
        "LLP102",
        "fail",
        ("not enabled",),
        aws={
            "ec2.DescribeRegions": {
                "Regions": [{"RegionName": REGION, "OptInStatus": "not-opted-in"}]
            }
        },
    ),
    Case("LLP102", "fail", ("no region",), aws={"ec2.DescribeRegions": {"Regions": []}}),
    Case("LLP103", "pass", ("version 30",)),
    Case(
        "LLP103",
        "fail",
        ("`make bootstrap`", "cdk bootstrap aws://ACCOUNT/us-east-1"),
        aws={"ssm.GetParameter": Refused("ParameterNotFound", status=400)},
    ),
    Case("LLP103", "fail", ("version 5",), aws={"ssm.GetParameter": {"Parameter": {"Value": "5"}}}),
    Case("LLP103", "unknown", ("ssm:GetParameter",), aws={"ssm.GetParameter": REFUSED}),
    Case("LLP104", "pass", ("will be created",)),
    Case("LLP104", "pass", ("CREATE_COMPLETE",), aws=stack("CREATE_COMPLETE")),
    Case("LLP104", "fail", ("Wait",), aws=stack("UPDATE_IN_PROGRESS")),
    Case("LLP104", "fail", ("continue-update-rollback",), aws=stack("UPDATE_ROLLBACK_FAILED")),
    Case("LLP104", "fail", ("no room",), aws=stack("DELETE_FAILED", StackStatusReason="no room")),
    Case("LLP104", "warn", ("never created",), aws=stack("ROLLBACK_COMPLETE")),
    Case("LLP104", "warn", ("rolled back",), aws=stack("UPDATE_ROLLBACK_COMPLETE")),
    # --- zones
    Case("LLP201", "pass", ("us-east-1a is use1-az1",)),
    Case("LLP201", "fail", ("use1-az2 is no zone",), aws=zones(use1_az1="available")),
    Case("LLP201", "warn", ("impaired",), aws=zones(use1_az1="available", use1_az2="impaired")),
    Case("LLP202", "pass", ("use1-az1, use1-az2",)),
    Case(
        "LLP202",
        "fail",
        ("not in use1-az2", "offered in use1-az1"),
        aws={
            "ec2.DescribeVpcEndpointServices": {
                "ServiceDetails": [
                    {"AvailabilityZones": [f"{REGION}a"], "AvailabilityZoneIds": ["use1-az1"]}
                ]
            }
        },
    ),
    Case(
        "LLP202",
        "fail",
        ("no endpoint service", "runtime-fips"),
        settings={"private_link.fips": True},
        aws={"ec2.DescribeVpcEndpointServices": Refused("InvalidServiceName", status=400)},
    ),
    Case("LLP202", "unknown", ("LLP201",), aws=zones(use1_az1="available")),
    Case(
        "LLP202",
        "unknown",
        ("names no zones",),
        aws={"ec2.DescribeVpcEndpointServices": {"ServiceDetails": [{}]}},
    ),
    # --- interface endpoints that exist
    Case("LLP203", "pass", ("no endpoint with private DNS",)),
    Case(
        "LLP203",
        "fail",
        ("Adopt it", LINK, GROUP),
        aws={"ec2.DescribeVpcEndpoints": endpoints(link())},
    ),
    Case(
        "LLP203",
        "pass",
        ("no endpoint with private DNS",),
        aws={"ec2.DescribeVpcEndpoints": endpoints(link(State="deleted"))},
    ),
    Case(
        "LLP203",
        "pass",
        ("own",),
        aws={
            "ec2.DescribeVpcEndpoints": endpoints(link()),
            **resources("PrivateLinkEndpointAB1FEE43", EC2_VPCEndpoint=LINK),
        },
    ),
    Case(
        "LLP203",
        "fail",
        ("already: AWS refuses a second one",),
        aws={
            "ec2.DescribeVpcEndpoints": endpoints(link()),
            **resources("LegacyLinkEndpoint0A1B2C3D", EC2_VPCEndpoint=LINK),
        },
    ),
    Case(
        "LLP203",
        "fail",
        ("hosted zone",),
        aws={
            "route53.ListHostedZonesByVPC": {
                "MaxItems": "100",
                "HostedZoneSummaries": [
                    {
                        "HostedZoneId": "Z0123456789ABCDEFGHIJ",
                        "Owner": {"OwningAccount": ACCOUNT},
                        "Name": f"runtime.sagemaker.{REGION}.amazonaws.com.",
                    }
                ],
            }
        },
    ),
    Case(
        "LLP203",
        "pass",
        (),
        aws={
            "route53.ListHostedZonesByVPC": {
                "MaxItems": "100",
                "HostedZoneSummaries": [
                    {
                        "HostedZoneId": "Z0123456789ABCDEFGHIJ",
                        "Owner": {"OwningService": "vpce.amazonaws.com"},
                        "Name": f"runtime.sagemaker.{REGION}.amazonaws.com.",
                    }
                ],
            }
        },
    ),
    Case(
        "LLP203",
        "fail",
        ("private_dns: false",),
        aws={"ec2.DescribeVpcEndpoints": endpoints(link())},
    ),
    Case("LLP203", "pass", (OTHER_VPC, "no other hosted zone"), {**FOR_OTHERS}),
    Case(
        "LLP203",
        "fail",
        (LINK, OTHER_VPC, "zonal names"),
        FOR_OTHERS,
        {
            "ec2.DescribeVpcEndpoints": in_vpc(
                OTHER_VPC, {"VpcEndpoints": [link(VpcId=OTHER_VPC)]}, {"VpcEndpoints": []}
            )
        },
    ),
    Case(
        "LLP203",
        "fail",
        ("Z0123456789ABCDEFGHIJ", OTHER_VPC),
        FOR_OTHERS,
        {
            "route53.ListHostedZonesByVPC": in_vpc(
                OTHER_VPC, hosted_zones("Z0123456789ABCDEFGHIJ"), hosted_zones()
            )
        },
    ),
    Case(
        "LLP203",
        "pass",
        (OTHER_VPC,),
        FOR_OTHERS,
        {
            "route53.ListHostedZonesByVPC": in_vpc(
                OTHER_VPC, hosted_zones("Z0123456789ABCDEFGHIJ"), hosted_zones()
            ),
            **resources(
                "PrivateLinkHostedZone0A1B2C3D", Route53_HostedZone="Z0123456789ABCDEFGHIJ"
            ),
        },
    ),
    # Also where the callers' own VPC is new, or has the name left alone.
    Case(
        "LLP203",
        "fail",
        ("Z0123456789ABCDEFGHIJ", OTHER_VPC),
        {**FOR_OTHERS, "network": None},
        {"route53.ListHostedZonesByVPC": hosted_zones("Z0123456789ABCDEFGHIJ")},
    ),
    Case(
        "LLP204",
        "pass",
        (RUNTIME, "private DNS on"),
        ADOPTED,
        {"ec2.DescribeVpcEndpoints": endpoints(link())},
    ),
    Case(
        "LLP204",
        "fail",
        ("does not exist",),
        ADOPTED,
        {"ec2.DescribeVpcEndpoints": Refused("InvalidVpcEndpointId.NotFound", status=400)},
    ),
    Case(
        "LLP204",
        "fail",
        ("Name the endpoint of service",),
        ADOPTED,
        {"ec2.DescribeVpcEndpoints": endpoints(link(ServiceName="com.amazonaws.us-east-1.sqs"))},
    ),
    Case(
        "LLP204",
        "fail",
        ("vpc-0fedcba9876543210",),
        ADOPTED,
        {"ec2.DescribeVpcEndpoints": endpoints(link(VpcId="vpc-0fedcba9876543210"))},
    ),
    Case(
        "LLP204",
        "fail",
        ("pending",),
        ADOPTED,
        {"ec2.DescribeVpcEndpoints": endpoints(link(State="pending"))},
    ),
    Case(
        "LLP204",
        "warn",
        ("private DNS is off",),
        ADOPTED,
        {"ec2.DescribeVpcEndpoints": endpoints(link(PrivateDnsEnabled=False))},
    ),
    Case(
        "LLP204",
        "fail",
        ("no subnet in use1-az2",),
        ADOPTED,
        {
            "ec2.DescribeVpcEndpoints": endpoints(link()),
            "ec2.DescribeSubnets": {"Subnets": [subnet("use1-az1")]},
        },
    ),
    Case(
        "LLP204",
        "warn",
        ("does not guard it", "10.0.0.0/16"),
        ADOPTED,
        {"ec2.DescribeVpcEndpoints": endpoints(link(Groups=[{"GroupId": "sg-0fedcba9876543210"}]))},
    ),
    Case(
        "LLP204",
        "fail",
        ("lets nobody in",),
        ADOPTED,
        {
            "ec2.DescribeVpcEndpoints": endpoints(
                link(Groups=[{"GroupId": "sg-0fedcba9876543210"}])
            ),
            "ec2.DescribeSecurityGroups": {
                "SecurityGroups": [
                    {
                        "GroupId": GROUP,
                        "IpPermissions": [
                            {
                                "IpProtocol": "tcp",
                                "FromPort": 80,
                                "ToPort": 80,
                                "IpRanges": [{"CidrIp": "10.0.0.0/16"}],
                            }
                        ],
                    }
                ]
            },
        },
    ),
    Case(
        "LLP204",
        "warn",
        ("endpoint/sentiment",),
        ADOPTED,
        {
            "ec2.DescribeVpcEndpoints": endpoints(
                link(
                    PolicyDocument=json.dumps(
                        {
                            "Statement": [
                                {
                                    "Effect": "Allow",
                                    "Principal": "*",
                                    "Action": "sagemaker:InvokeEndpoint",
                                    "Resource": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:endpoint/other",
                                }
                            ]
                        }
                    )
                )
            )
        },
    ),
    Case(
        "LLP204",
        "unknown",
        ("StringEquals aws:SourceVpc",),
        ADOPTED,
        {
            "ec2.DescribeVpcEndpoints": endpoints(
                link(
                    PolicyDocument=json.dumps(
                        {
                            "Statement": [
                                {
                                    "Effect": "Allow",
                                    "Principal": "*",
                                    "Action": "*",
                                    "Resource": "*",
                                    "Condition": {"StringEquals": {"aws:SourceVpc": VPC}},
                                }
                            ]
                        }
                    )
                )
            )
        },
    ),
    # --- whom private DNS redirects
    Case("LLP209", "pass", ("no other endpoint",)),
    Case(
        "LLP209",
        "pass",
        ("no other endpoint",),
        aws={
            "sagemaker.ListEndpoints": in_service("Sentiment"),
            **resources(SageMaker_Endpoint=ENDPOINT_ARN),
        },
    ),
    Case(
        "LLP209",
        "pass",
        (LINK, "already"),
        aws={
            "sagemaker.ListEndpoints": in_service("theirs"),
            "ec2.DescribeVpcEndpoints": endpoints(link()),
            **resources(EC2_VPCEndpoint=LINK),
        },
    ),
    Case(
        "LLP209",
        "warn",
        (
            "2 other endpoints are in service",
            "ranking",
            "theirs",
            VPC,
            "allow_cidrs",
            "private_dns: false",
        ),
        aws={"sagemaker.ListEndpoints": in_service("theirs", "ranking")},
    ),
    Case(
        "LLP209",
        "warn",
        ("1 other endpoint is", "narrow_policy: true refuses them"),
        {"private_link": {"narrow_policy": True}},
        {"sagemaker.ListEndpoints": in_service("theirs")},
    ),
    Case(
        "LLP209",
        "unknown",
        ("callers", "no flow log", "CloudTrail"),
        aws={"sagemaker.ListEndpoints": in_service("theirs")},
    ),
    *(
        Case("LLP209", "unknown", ("no flow log",), aws=flow_log(**changes))
        for changes in (
            {"TrafficType": "REJECT"},
            {"FlowLogStatus": "FAILED"},
            {"LogFormat": "${srcaddr}"},
            {"LogDestinationType": "s3", "LogGroupName": ""},
        )
    ),
    Case(
        "LLP209",
        "warn",
        (
            "callers",
            "10.0.3.17 (eni-1, AWS Lambda VPC ENI-shop)",
            "behind NAT gateway eni-2",
            "10.0.4.9 (eni-3)",
        ),
        aws={
            **flow_log(),
            **INTERFACES,
            "logs.FilterLogEvents": flows(
                ("eni-1", "10.0.3.17"),
                ("eni-2", "10.0.0.4"),
                ("eni-3", "10.0.4.9"),
                ("eni-1", "10.0.3.17"),
            ),
        },
    ),
    Case(
        "LLP209",
        "unknown",
        ("nobody is in what was read",),
        aws={**flow_log(), "logs.FilterLogEvents": flows()},
    ),
    Case(
        "LLP209",
        "unknown",
        ("logs:FilterLogEvents",),
        aws={**flow_log(), "logs.FilterLogEvents": REFUSED},
    ),
    # --- the VPC and its subnets
    Case("LLP205", "pass", ("hostnames on",)),
    Case(
        "LLP205",
        "pass",
        ("enableDnsHostnames off", "private DNS alone"),
        LEFT_ALONE,
        {"ec2.DescribeVpcAttribute": vpc_attribute(hostnames=False)},
    ),
    Case(
        "LLP205",
        "fail",
        ("enableDnsHostnames off",),
        aws={"ec2.DescribeVpcAttribute": vpc_attribute(hostnames=False)},
    ),
    Case(
        "LLP205",
        "fail",
        ("does not exist",),
        aws={"ec2.DescribeVpcAttribute": Refused("InvalidVpcID.NotFound", status=400)},
    ),
    Case("LLP206", "pass", (SUBNETS["use1-az1"], "use1-az1")),
    Case(
        "LLP206",
        "fail",
        ("lies in us-east-1c",),
        aws=subnets(AvailabilityZone=f"{REGION}c", AvailabilityZoneId="use1-az3"),
    ),
    Case(
        "LLP206",
        "fail",
        (f"no subnet of {VPC}",),
        aws={"ec2.DescribeSubnets": {"Subnets": [subnet("use1-az2")]}},
    ),
    Case("LLP206", "pass", ("10.0.1.0/24",), NAMES),
    Case(
        "LLP206",
        "fail",
        ("internet gateway in us-east-1b",),
        NAMES,
        {"ec2.DescribeSubnets": {"Subnets": [subnet("use1-az1")]}},
    ),
    Case(
        "LLP206",
        "fail",
        ("internet gateway in us-east-1a",),
        NAMES,
        routes({**DEFAULT_ROUTE, "GatewayId": "igw-0123456789abcdef0"}),
    ),
    Case(
        "LLP206",
        "warn",
        ("takes one of them",),
        NAMES,
        {
            "ec2.DescribeSubnets": {
                "Subnets": [
                    subnet("use1-az1"),
                    subnet("use1-az2"),
                    subnet("use1-az2", SubnetId="subnet-0fedcba9876543210"),
                ]
            }
        },
    ),
    # 2 fleets x 8 instances x 2 addresses + interface endpoint + 16 spare = 49 free ones
    Case("LLP207", "pass", ("49 hold two fleets of 8",)),
    Case("LLP207", "pass", ("49 free",), aws=subnets(AvailableIpAddressCount=49)),
    Case(
        "LLP207",
        "warn",
        ("48 free", "25 when they spread"),
        aws=subnets(AvailableIpAddressCount=48),
    ),
    Case("LLP207", "fail", ("24 free",), aws=subnets(AvailableIpAddressCount=24)),
    Case(
        "LLP207",
        "warn",
        ("running fleet",),
        aws=stack("UPDATE_COMPLETE") | subnets(AvailableIpAddressCount=24),
    ),
    Case("LLP207", "pass", ("48 hold",), ADOPTED),
    Case(
        "LLP207",
        "unknown",
        ("LLP206",),
        aws={"ec2.DescribeSubnets": {"Subnets": [subnet("use1-az2")]}},
    ),
    Case("LLP208", "pass", ("gateway endpoint",)),
    Case(
        "LLP208",
        "pass",
        ("NAT gateway",),
        aws=routes({**DEFAULT_ROUTE, "NatGatewayId": "nat-0123456789abcdef0"}),
    ),
    Case("LLP208", "warn", ("no way to S3",), aws=routes()),
    Case(
        "LLP208",
        "warn",
        ("no way to S3",),
        aws=routes(
            {**DEFAULT_ROUTE, "NatGatewayId": "nat-0123456789abcdef0", "State": "blackhole"}
        ),
    ),
    Case(
        "LLP208",
        "fail",
        ("network isolation", "gateway endpoint for S3"),
        {E + "network_isolation": True},
        routes(),
    ),
    Case(
        "LLP208",
        "warn",
        ("internet gateway only",),
        aws=routes({**DEFAULT_ROUTE, "GatewayId": "igw-0123456789abcdef0"}),
    ),
    Case(
        "LLP208",
        "warn",
        ("no way to S3",),
        aws={
            "ec2.DescribeVpcEndpoints": endpoints(
                {**S3_GATEWAY, "RouteTableIds": ["rtb-0fedcba9876543210"]}
            )
        },
    ),
    # --- capacity
    Case("LLP301", "pass", ("ml.m5.xlarge",)),
    Case(
        "LLP301",
        "pass",
        (),
        aws={
            "service-quotas.ListServiceQuotas": quotas(),
            "service-quotas.ListAWSDefaultServiceQuotas": quotas(ml_m5_xlarge=4),
        },
    ),
    Case(
        "LLP301",
        "warn",
        ("probably not offered",),
        aws={"service-quotas.ListServiceQuotas": quotas(ml_g5_xlarge=4)},
    ),
    Case("LLP302", "pass", ("quota 16 (applied)", "8 at most", "16 during")),
    Case(
        "LLP302",
        "fail",
        ("quota 15", "request-service-quota-increase", "--desired-value 16"),
        aws={"service-quotas.ListServiceQuotas": quotas(ml_m5_xlarge=15)},
    ),
    Case(
        "LLP302",
        "fail",
        ("AWS's default",),
        aws={
            "service-quotas.ListServiceQuotas": quotas(),
            "service-quotas.ListAWSDefaultServiceQuotas": quotas(ml_m5_xlarge=4),
        },
    ),
    # 8 and a batch of a quarter
    Case(
        "LLP302",
        "pass",
        ("10 during",),
        {E + "deployment": {"rolling": {"batch_percent": 25}}},
        {"service-quotas.ListServiceQuotas": quotas(ml_m5_xlarge=10)},
    ),
    Case(
        "LLP302",
        "unknown",
        ("LLP301",),
        aws={"service-quotas.ListServiceQuotas": quotas(ml_g5_xlarge=4)},
    ),
    Case(
        "LLP302",
        "unknown",
        ("not available",),
        aws={
            "service-quotas.ListServiceQuotas": {
                "Quotas": [{"QuotaName": "ml.m5.xlarge for endpoint usage"}]
            }
        },
    ),
    Case("LLP303", "pass", ("nothing is reserved", "1000"), WARMED),
    Case("LLP303", "pass", ("4 more reserved", "leave 996"), RESERVING),
    Case("LLP303", "pass", ("4 more reserved", "leave 100"), RESERVING, concurrent(150, 104)),
    Case(
        "LLP303",
        "fail",
        ("leave 99", "at least 100", "reserve_concurrency: false"),
        RESERVING,
        concurrent(150, 103),
    ),
    # What the stack has reserved before is not reserved again.
    Case(
        "LLP303",
        "pass",
        ("0 more reserved",),
        RESERVING,
        {**concurrent(150, 100), **DEPLOYED, **reserving_stack(2, 2)},
    ),
    Case(
        "LLP303",
        "pass",
        ("2 more reserved",),
        RESERVING,
        {**concurrent(150, 102), **DEPLOYED, **reserving_stack(2)},
    ),
    # Changed from reserving to not reserving: what is given back counts.
    Case(
        "LLP303",
        "pass",
        ("nothing is reserved",),
        WARMED,
        {**concurrent(150, 100), **DEPLOYED, **reserving_stack(2, 2)},
    ),
    # A new account.
    Case("LLP303", "fail", ("leave 6", "at least 10"), RESERVING, concurrent(10, 10)),
    Case("LLP303", "warn", ("10 executions", "L-B99A9384"), WARMED, concurrent(10, 10)),
    Case(
        "LLP303",
        "unknown",
        ("lambda:GetAccountSettings",),
        WARMED,
        {"lambda.GetAccountSettings": REFUSED},
    ),
    # --- image and data
    Case("LLP401", "pass", ("team/model:1.4",)),
    Case("LLP401", "pass", ("763104351884",), {DATA: container(image=DLC)}),
    Case(
        "LLP401",
        "fail",
        ("has no",),
        aws={"ecr.BatchGetImage": {"images": [], "failures": [{"failureCode": "ImageNotFound"}]}},
    ),
    Case(
        "LLP401",
        "fail",
        ("has no",),
        aws={"ecr.BatchGetImage": Refused("RepositoryNotFoundException", status=400)},
    ),
    Case(
        "LLP401",
        "unknown",
        ("UpstreamAccessDenied",),
        aws={
            "ecr.BatchGetImage": {
                "images": [],
                "failures": [{"failureCode": "UpstreamAccessDenied"}],
            }
        },
    ),
    Case(
        "LLP401",
        "fail",
        ("lies in eu-west-1",),
        {DATA: container(image={"uri": f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com/team/model:1"})},
    ),
    Case(
        "LLP401",
        "unknown",
        ("no ECR registry",),
        {DATA: container(image={"uri": "docker.io/team/model:1"})},
    ),
    Case("LLP402", "pass", ("x86_64 on ml.m5.xlarge",)),
    Case(
        "LLP402",
        "fail",
        ("arm64 on ml.m5.xlarge", "linux/amd64"),
        fetched=lambda url: b'{"architecture": "arm64"}',
    ),
    Case(
        "LLP402",
        "pass",
        ("x86_64, arm64",),
        aws={
            "ecr.BatchGetImage": manifest(
                {
                    "manifests": [
                        {"platform": {"architecture": "amd64"}},
                        {"platform": {"architecture": "arm64"}},
                        {"platform": {"architecture": "unknown"}},
                    ]
                }
            )
        },
    ),
    Case(
        "LLP402",
        "fail",
        ("x86_64 on ml.c7g.xlarge", "linux/arm64"),
        {E + "instance_type": "ml.c7g.xlarge"},
    ),
    Case("LLP402", "unknown", ("does not tell",), fetched=lambda url: b"not json"),
    Case("LLP402", "unknown", ("LLP401",), aws={"ecr.BatchGetImage": {"images": []}}),
    Case("LLP403", "pass", ("268 MB",)),
    Case(
        "LLP403",
        "pass",
        ("2 objects, 3 kB",),
        {DATA: container(data={"s3_prefix": "s3://models/sentiment/"})},
    ),
    Case(
        "LLP403",
        "fail",
        ("nothing at s3://models",),
        aws={"s3.HeadObject": Refused("404", "Not Found", 404)},
    ),
    Case(
        "LLP403",
        "fail",
        ("nothing at",),
        {DATA: container(data={"s3_prefix": "s3://models/sentiment/"})},
        {"s3.ListObjectsV2": {"KeyCount": 0}},
    ),
    Case("LLP403", "unknown", ("s3:GetObject",), aws={"s3.HeadObject": Refused("403")}),
    Case("LLP403", "pass", ("may decrypt", DATA_KEY), STATED_KEY, encrypted(DATA_KEY)),
    Case("LLP403", "pass", ("may decrypt",), STATED_KEY, encrypted(DATA_KEY.rpartition("/")[2])),
    Case("LLP403", "pass", ("AWS manages",), {E + "role_arn": None}, managed_by("AWS")),
    Case(  # the role writes with it, which takes kms:Decrypt
        "LLP403",
        "pass",
        ("may decrypt",),
        {E + "data_capture": {"s3": "s3://captured/", "kms_key_arn": DATA_KEY}},
        encrypted(DATA_KEY),
    ),
    Case(
        "LLP403",
        "pass",
        ("may decrypt",),
        {E + "core_dump": {"s3": "s3://dumps/"}, "safeguards": {"kms_key_arn": DATA_KEY}},
        encrypted(DATA_KEY),
    ),
    Case(
        "LLP403",
        "fail",
        (DATA_KEY, "with no key"),
        {E + "role_arn": None, "safeguards": {"kms_key_arn": DATA_KEY}},
        managed_by("CUSTOMER"),
    ),
    Case(
        "LLP403",
        "fail",
        (DATA_KEY, f"with {KEY}", f"kms_key_arn: '{DATA_KEY}'"),
        {**with_key(KEY), E + "role_arn": None},
        managed_by("CUSTOMER"),
    ),
    Case(  # the first variant's role has that key
        "LLP403",
        "fail",
        ("sentiment b ", "with no key"),
        {**STATED_KEY, E + "role_arn": None, E + "variants": {"b": {"containers": container()}}},
        managed_by("CUSTOMER"),
    ),
    Case(
        "LLP403",
        "fail",
        ("4 objects, 35 B, the largest encrypted with", f"kms_key_arn: '{DATA_KEY}'"),
        {E + "role_arn": None, DATA: container(data={"s3_prefix": "s3://models/sentiment/"})},
        {
            "kms.DescribeKey": managed_by("CUSTOMER")["kms.DescribeKey"],
            "s3.HeadObject": of_key("b", DATA_KEY),
            "s3.ListObjectsV2": {
                "Contents": [
                    {"Key": name, "Size": size}
                    for name, size in (("m/", 0), ("a", 10), ("b", 20), ("c", 5))
                ]
            },
        },
    ),
    Case(
        "LLP403",
        "fail",
        ("no such key",),
        aws={**encrypted(DATA_KEY), "kms.DescribeKey": Refused("NotFoundException", status=400)},
    ),
    Case(  # nobody is asked: another account's key takes a right in any case
        "LLP403",
        "fail",
        ("210987654321", "policy name this account"),
        {E + "role_arn": None},
        {**encrypted(DATA_KEY.replace(ACCOUNT, "210987654321")), "kms.DescribeKey": REFUSED},
    ),
    Case("LLP403", "warn", (DATA_KEY, ROLE, "not looked up"), aws=managed_by("CUSTOMER")),
    Case(
        "LLP403",
        "unknown",
        ("kms:DescribeKey",),
        {E + "role_arn": None},
        {**encrypted(DATA_KEY), "kms.DescribeKey": REFUSED},
    ),
    Case("LLP404", "pass", (f"models is in {REGION}",)),
    Case(
        "LLP404",
        "fail",
        ("models is in eu-west-1",),
        aws={"s3.HeadBucket": {"BucketRegion": "eu-west-1"}},
    ),
    Case(
        "LLP404",
        "fail",
        ("eu-west-1",),
        aws={"s3.HeadBucket": Refused("403", headers={"x-amz-bucket-region": "eu-west-1"})},
    ),
    Case(
        "LLP404",
        "fail",
        ("eu-west-1",),
        aws={"s3.HeadBucket": {}, "s3.GetBucketLocation": {"LocationConstraint": "EU"}},
    ),
    Case("LLP404", "pass", (REGION,), aws={"s3.HeadBucket": {}}),
    Case("LLP404", "fail", ("no bucket",), aws={"s3.HeadBucket": Refused("404", status=404)}),
    Case("LLP405", "pass", ("268 MB, 3 s at an assumed 100 MB/s",)),
    Case(
        "LLP405",
        "warn",
        ("41 GB", "no timeout"),
        aws={"s3.HeadObject": {"ContentLength": 41 * 10**9}},
    ),
    Case(
        "LLP405",
        "warn",
        ("timeout is 60 s",),
        {E + "model_data_download_timeout": "60s"},
        {"s3.HeadObject": {"ContentLength": 7 * 10**9}},
    ),
    Case(
        "LLP405",
        "pass",
        ("600 s allowed",),
        {E + "model_data_download_timeout": "10m"},
        {"s3.HeadObject": {"ContentLength": 41 * 10**9}},
    ),
    Case(
        "LLP405",
        "fail",
        ("do not fit", "2 GiB"),
        {E + "volume_size_gib": 2},
        {"s3.HeadObject": {"ContentLength": 3 * 10**9}},
    ),
    Case("LLP405", "unknown", ("LLP403",), aws={"s3.HeadObject": Refused("404", status=404)}),
    # --- what the stack refers to
    Case("LLP501", "pass", ("model-role trusts",)),
    Case("LLP501", "fail", ("does not name sagemaker",), aws={"iam.GetRole": untrusting}),
    Case("LLP501", "fail", ("no role",), aws={"iam.GetRole": Refused("NoSuchEntity", status=404)}),
    Case(
        "LLP501",
        "fail",
        ("210987654321",),
        {E + "role_arn": "arn:aws:iam::210987654321:role/model-role"},
    ),
    Case("LLP502", "pass", ("cfn-exec-role", "iam:PassRole")),
    Case(
        "LLP502",
        "fail",
        ("may not iam:PassRole", ROLE),
        aws={
            "iam.SimulatePrincipalPolicy": {
                "EvaluationResults": [
                    {"EvalActionName": "iam:PassRole", "EvalDecision": "implicitDeny"}
                ]
            }
        },
    ),
    Case("LLP502", "pass", ("dev may",), aws={"iam.GetRole": only_model_role}),
    Case("LLP502", "pass", ("iam:CreateRole, iam:PassRole",), {E + "role_arn": None}),
    Case(
        "LLP502",
        "unknown",
        ("who deploys",),
        aws={
            "iam.GetRole": Refused("NoSuchEntity", status=404),
            "sts.GetCallerIdentity": {
                "Account": ACCOUNT,
                "UserId": "A",
                "Arn": f"arn:aws:sts::{ACCOUNT}:federated-user/dev",
            },
        },
    ),
    Case("LLP503", "pass", ("on-call: 2",)),
    Case(
        "LLP503",
        "fail",
        ("no topic",),
        aws={"sns.GetTopicAttributes": Refused("NotFound", status=404)},
    ),
    Case("LLP503", "fail", ("eu-west-1",), {"alarm_topic_arn": TOPIC.replace(REGION, "eu-west-1")}),
    Case(
        "LLP503",
        "warn",
        ("nobody",),
        aws={"sns.GetTopicAttributes": {"Attributes": {"SubscriptionsConfirmed": "0"}}},
    ),
    Case(
        "LLP503",
        "warn",
        ("alias/aws/sns",),
        aws={
            "sns.GetTopicAttributes": {
                "Attributes": {"SubscriptionsConfirmed": "1", "KmsMasterKeyId": "alias/aws/sns"}
            }
        },
    ),
    Case("LLP504", "pass", ("Enabled",)),
    Case("LLP504", "pass", ("model data",), {**STATED_KEY, E + "kms_key_arn": None}),
    Case(
        "LLP504",
        "fail",
        ("model data", "another region"),
        with_key(KEY.replace(REGION, "eu-west-1")),
    ),
    Case("LLP504", "fail", ("PendingDeletion",), aws={"kms.DescribeKey": KEY_STATE}),
    Case(
        "LLP504",
        "fail",
        ("no key",),
        aws={"kms.DescribeKey": Refused("NotFoundException", status=400)},
    ),
    Case(
        "LLP504", "fail", ("another region",), {E + "kms_key_arn": KEY.replace(REGION, "eu-west-1")}
    ),
    Case(
        "LLP504",
        "fail",
        ("SIGN_VERIFY",),
        aws={
            "kms.DescribeKey": {
                "KeyMetadata": {
                    "KeyId": "1234abcd",
                    "KeyState": "Enabled",
                    "KeyUsage": "SIGN_VERIFY",
                }
            }
        },
    ),
    # --- against the deployed stack
    Case("LLP601", "pass", ("primary ml.m5.xlarge",), aws=DEPLOYED),
    Case(
        "LLP601",
        "fail",
        ("from ml.g5.xlarge to ml.m5.xlarge", "two deploys"),
        aws=deployed(InstanceType="ml.g5.xlarge"),
    ),
    Case(
        "LLP601",
        "fail",
        ("variant primary would be removed",),
        {E + "variant_name": "second"},
        DEPLOYED,
    ),
    Case(
        "LLP601",
        "pass",
        ("scaling: none",),
        aws=deployed(InstanceType="ml.g5.xlarge")
        | {"application-autoscaling.DescribeScalableTargets": {"ScalableTargets": []}},
    ),
    Case(
        "LLP601",
        "pass",
        ("becomes mood",),
        {E + "endpoint_name": "mood"},
        deployed(InstanceType="ml.g5.xlarge"),
    ),
    Case("LLP602", "pass", ("primary: 4 instances",), aws=DEPLOYED),
    Case(
        "LLP602",
        "fail",
        ("Updating", "Cannot update in-progress endpoint", "--wait 15m"),
        aws=endpoint_status("Updating"),
    ),
    Case("LLP602", "fail", ("RollingBack", "Wait"), aws=endpoint_status("RollingBack")),
    Case("LLP602", "fail", ("no image",), aws=endpoint_status("Failed", FailureReason="no image")),
    Case(
        "LLP602",
        "fail",
        ("behind the stack's back",),
        aws=merged(DEPLOYED, {"sagemaker.DescribeEndpoint": WORLD["sagemaker.DescribeEndpoint"]}),
    ),
    Case("LLP603", "pass", ("no endpoint is called",)),
    Case("LLP603", "pass", ("own",), aws=DEPLOYED),
    Case(
        "LLP603",
        "fail",
        ("another key made it", "take the old key out"),
        aws=merged(DEPLOYED, resources(SageMaker_Endpoint=ENDPOINT_ARN)),
    ),
    Case(
        "LLP603",
        "fail",
        ("not this stack's", ENDPOINT_ARN),
        aws={"sagemaker.DescribeEndpoint": DEPLOYED["sagemaker.DescribeEndpoint"]},
    ),
    # --- alarms on tokens
    Case("LLP605", "pass", ("enrichment runs",), LANGUAGE, aws=enrichment("Running")),
    Case(
        "LLP605",
        "warn",
        (
            "start-telemetry-enrichment`, then `aws cloudwatch start-otel-enrichment",
            "bills each GB",
        ),
        LANGUAGE,
        aws=enrichment("Stopped"),
    ),
    Case(
        "LLP605",
        "warn",
        ("me-central-1", "2 alarms"),
        LANGUAGE,
        aws=enrichment("Running"),
        region="me-central-1",
    ),
]


@cache
def run(case: Case) -> tuple[list[Any], FakeAws]:
    """What comes of a case, and what was asked of AWS; once for all tests."""
    aws = FakeAws(merged(WORLD, case.aws))
    more = {"fetch": case.fetched} if case.fetched else {}
    return outcomes(case.check, aws, settings_with(case.settings), region=case.region, **more), aws
