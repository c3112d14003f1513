"""An account in which every check passes, and settings for it; tests break one thing at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from local_sagemaker.permissions.evaluator import Asked, Policies, Principal, decide, read_policy
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.operate.checking.checks import Result, checks
from low_latency_endpoint.operate.preflight.context import PreflightContext
from low_latency_endpoint.settings import Settings, parse_settings, planned_variants
from tests.fake_aws import ACCOUNT, REGION, FakeAws, Refused, filtered

VPC = "vpc-0123456789abcdef0"
SUBNETS = {"use1-az1": "subnet-0123456789abcdef0", "use1-az2": "subnet-0123456789abcdef1"}
LINK = "vpce-0123456789abcdef0"
GROUP = "sg-0123456789abcdef0"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/model-role"
DEPLOYER = f"arn:aws:iam::{ACCOUNT}:role/cdk-hnb659fds-cfn-exec-role-{ACCOUNT}-{REGION}"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:on-call"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
RUNTIME_NAME = f"runtime.sagemaker.{REGION}.amazonaws.com"
ADDRESSES = ["203.0.113.7", "203.0.113.8"]
RUNTIME = f"com.amazonaws.{REGION}.sagemaker.runtime"
ENDPOINT_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:endpoint/sentiment"
CONFIG_URL = "https://layers.example.com/config"

SETTINGS: dict[str, Any] = {
    "stack_name": "Shop",
    "region": REGION,
    "account": ACCOUNT,
    "client_zones": {"ids": list(SUBNETS)},
    "network": {"vpc_id": VPC, "subnets": SUBNETS},
    "alarm_topic_arn": TOPIC,
    "endpoints": {
        "sentiment": {
            "endpoint_name": "sentiment",
            "containers": [
                {
                    "image": {"ecr": {"repository": "team/model", "tag": "1.4"}},
                    "data": {"s3": "s3://models/sentiment/model.tar.gz"},
                }
            ],
            "instance_type": "ml.m5.xlarge",
            "latency": {"p99": "200ms"},
            "throughput": {"peak_tps": 100, "tps_per_instance": 50, "safety_factor": 0.5},
            "role_arn": ROLE,
            "kms_key_arn": KEY,
        }
    },
}
LARGEST_FLEET = 8  # 100 / (50 x 0.5) = 4 at peak; two zones: 8 hold the peak while one has failed

ADOPTED = {"private_link": {"interface_endpoint_id": LINK, "security_group_id": GROUP}}


def subnet(zone: str, **changes: Any) -> dict[str, Any]:
    """One subnet of the VPC."""
    number = list(SUBNETS).index(zone)
    return {
        "SubnetId": SUBNETS[zone],
        "VpcId": VPC,
        "CidrBlock": f"10.0.{number}.0/24",
        "AvailabilityZone": f"{REGION}{'ab'[number]}",
        "AvailabilityZoneId": zone,
        "AvailableIpAddressCount": 250,
        **changes,
    }


def link(**changes: Any) -> dict[str, Any]:
    """An interface endpoint for the runtime, in both subnets."""
    return {
        "VpcEndpointId": LINK,
        "VpcEndpointType": "Interface",
        "VpcId": VPC,
        "ServiceName": RUNTIME,
        "State": "available",
        "PrivateDnsEnabled": True,
        "SubnetIds": list(SUBNETS.values()),
        "Groups": [{"GroupId": GROUP}],
        "PolicyDocument": allowing(),
        **changes,
    }


def allowing(**changes: Any) -> str:
    """The policy of an interface endpoint: everything, but for changes."""
    allowed = {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed | changes]})


def group(port: int = 443) -> dict[str, Any]:
    """The security group, which lets in the VPC at a port."""
    rule = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port}
    permission = {**rule, "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}
    found = {"GroupId": GROUP, "IpPermissions": [permission]}
    return {"ec2.DescribeSecurityGroups": {"SecurityGroups": [found]}}


S3_GATEWAY = {
    "VpcEndpointId": "vpce-0fedcba9876543210",
    "VpcEndpointType": "Gateway",
    "VpcId": VPC,
    "ServiceName": f"com.amazonaws.{REGION}.s3",
    "State": "available",
    "RouteTableIds": ["rtb-0123456789abcdef0"],
}


def route_table(**changes: Any) -> dict[str, Any]:
    """The VPC's main route table, which all subnets use."""
    return {
        "RouteTableId": "rtb-0123456789abcdef0",
        "VpcId": VPC,
        "Associations": [{"Main": True}],
        "Routes": [{"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local"}],
        **changes,
    }


def endpoints(*found: Mapping[str, Any]) -> Any:
    """DescribeVpcEndpoints, by service name where the request filters for one."""

    def answer(params: Mapping[str, Any]) -> Any:
        wanted = list(filtered(params, "service-name"))
        return {
            "VpcEndpoints": [each for each in found if not wanted or each["ServiceName"] in wanted]
        }

    return answer


def quotas(**values: float | None) -> dict[str, Any]:
    """Quotas by instance type, written with underscores; ``None`` is one without a value."""
    return {
        "Quotas": [
            {
                "QuotaName": f"{name.replace('_', '.')} for endpoint usage",
                "QuotaCode": "L-12345678",
                **({} if value is None else {"Value": value}),
            }
            for name, value in values.items()
        ]
    }


def roles(params: Mapping[str, Any]) -> Any:
    """The model's role and the bootstrap's execution role."""
    name = params["RoleName"]
    trusted = {
        "Effect": "Allow",
        "Principal": {"Service": "sagemaker.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    return {
        "Role": {
            "RoleName": name,
            "Arn": ROLE if name == "model-role" else DEPLOYER,
            "AssumeRolePolicyDocument": json.dumps({"Statement": [trusted]}),
        }
    }


def simulating(*statements: Mapping[str, Any]) -> Any:
    """SimulatePrincipalPolicy of a deployer with one policy, judged as the local AWS judges."""
    held = Policies((read_policy(json.dumps({"Statement": statements})),))

    def answer(params: Mapping[str, Any]) -> Any:
        keys = {
            entry["ContextKeyName"].lower(): entry["ContextKeyValues"][0]
            for entry in params["ContextEntries"]
        }
        deployer = Principal(params["PolicySourceArn"], ACCOUNT)
        results = []
        for action in params["ActionNames"]:
            allowed = [
                decide(Asked(deployer, action, arn, ACCOUNT, keys), held).allowed
                for arn in params["ResourceArns"]
            ]
            results.append(
                {
                    "EvalActionName": action,
                    "EvalDecision": "allowed" if all(allowed) else "implicitDeny",
                    "ResourceSpecificResults": [
                        {
                            "EvalResourceName": arn,
                            "EvalResourceDecision": "allowed" if may else "implicitDeny",
                        }
                        for arn, may in zip(params["ResourceArns"], allowed, strict=True)
                    ],
                }
            )
        return {"EvaluationResults": results}

    return answer


ALL: dict[str, Any] = {"Effect": "Allow", "Action": "*", "Resource": "*"}


def vpc_attribute(hostnames: bool = True) -> Any:
    """DescribeVpcAttribute."""

    def answer(params: Mapping[str, Any]) -> Any:
        if params["Attribute"] == "enableDnsSupport":
            return {"EnableDnsSupport": {"Value": True}}
        return {"EnableDnsHostnames": {"Value": hostnames}}

    return answer


def manifest(body: Mapping[str, Any]) -> dict[str, Any]:
    """BatchGetImage with one image."""
    return {"images": [{"imageManifest": json.dumps(body)}]}


def in_service(*names: str) -> dict[str, Any]:
    """ListEndpoints."""
    return {"Endpoints": [{"EndpointName": name, "EndpointStatus": "InService"} for name in names]}


NO_STACK = Refused("ValidationError", "Stack with id Shop does not exist", 400)
NO_ENDPOINT = Refused("ValidationException", "Could not find endpoint", 400)

WORLD: dict[str, Any] = {
    "sts.GetCallerIdentity": {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/dev"},
    "ec2.DescribeRegions": {
        "Regions": [{"RegionName": REGION, "OptInStatus": "opt-in-not-required"}]
    },
    "ssm.GetParameter": {"Parameter": {"Value": "30"}},
    "cloudformation.DescribeStacks": NO_STACK,
    "cloudformation.ListStackResources": NO_STACK,
    "ec2.DescribeAvailabilityZones": {
        "AvailabilityZones": [
            {
                "ZoneName": f"{REGION}{letter}",
                "ZoneId": zone,
                "State": "available",
                "OptInStatus": "opt-in-not-required",
            }
            for letter, zone in zip("abc", ("use1-az1", "use1-az2", "use1-az3"), strict=True)
        ]
    },
    "ec2.DescribeVpcEndpointServices": {
        "ServiceNames": [RUNTIME],
        "ServiceDetails": [
            {
                "ServiceName": RUNTIME,
                "AvailabilityZones": [f"{REGION}a", f"{REGION}b"],
                "AvailabilityZoneIds": ["use1-az1", "use1-az2"],
            }
        ],
    },
    "ec2.DescribeVpcEndpoints": endpoints(S3_GATEWAY),
    "route53.ListHostedZonesByVPC": {"HostedZoneSummaries": []},
    "ec2.DescribeVpcs": {"Vpcs": [{"OwnerId": ACCOUNT}]},
    "ec2.DescribeVpcAttribute": vpc_attribute(),
    "ec2.DescribeSubnets": {"Subnets": [subnet(zone) for zone in SUBNETS]},
    "ec2.DescribeRouteTables": {"RouteTables": [route_table()]},
    **group(),
    "service-quotas.ListServiceQuotas": quotas(ml_m5_xlarge=16),
    "service-quotas.ListAWSDefaultServiceQuotas": quotas(),
    "lambda.GetAccountSettings": {
        "AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 1000}
    },
    "ecr.BatchGetImage": manifest({"config": {"digest": "sha256:" + "0" * 64}}),
    "ecr.GetDownloadUrlForLayer": {"downloadUrl": CONFIG_URL},
    "s3.HeadObject": {"ContentLength": 268_000_000},
    "s3.ListObjectsV2": {"Contents": [{"Key": "a", "Size": 1000}, {"Key": "b", "Size": 2000}]},
    "s3.HeadBucket": {"BucketRegion": REGION},
    "s3.GetBucketLocation": {},
    "iam.GetRole": roles,
    "iam.SimulatePrincipalPolicy": simulating(ALL),
    "sns.GetTopicAttributes": {"Attributes": {"SubscriptionsConfirmed": "2"}},
    "kms.DescribeKey": {
        "KeyMetadata": {"KeyId": "1234abcd", "KeyState": "Enabled", "KeyUsage": "ENCRYPT_DECRYPT"}
    },
    "sagemaker.DescribeEndpoint": NO_ENDPOINT,
    "sagemaker.ListEndpoints": in_service(),
    "ec2.DescribeFlowLogs": {"FlowLogs": []},
}

_LOGICAL_ID, _TYPE = "sentimentEndpointBBDA8A8C", "AWS::SageMaker::Endpoint"
_TEMPLATE = {
    "Resources": {_LOGICAL_ID: {"Type": _TYPE, "Properties": {"EndpointName": "sentiment"}}}
}
DEPLOYED: dict[str, Any] = {
    "cloudformation.DescribeStacks": {
        "Stacks": [{"StackName": "Shop", "StackStatus": "UPDATE_COMPLETE"}]
    },
    "cloudformation.ListStackResources": {
        "StackResourceSummaries": [
            {
                "LogicalResourceId": _LOGICAL_ID,
                "ResourceType": _TYPE,
                "PhysicalResourceId": ENDPOINT_ARN,
                "ResourceStatus": "UPDATE_COMPLETE",
            }
        ]
    },
    "cloudformation.GetTemplate": {"TemplateBody": json.dumps(_TEMPLATE)},
    "sagemaker.DescribeEndpoint": {
        "EndpointName": "sentiment",
        "EndpointArn": ENDPOINT_ARN,
        "EndpointConfigName": "sentiment-1",
        "EndpointStatus": "InService",
        "ProductionVariants": [
            {"VariantName": "primary", "CurrentInstanceCount": 4, "DesiredInstanceCount": 4}
        ],
    },
    "sagemaker.DescribeEndpointConfig": {
        "EndpointConfigName": "sentiment-1",
        "ProductionVariants": [{"VariantName": "primary", "InstanceType": "ml.m5.xlarge"}],
    },
    "application-autoscaling.DescribeScalableTargets": {
        "ScalableTargets": [
            {
                "ServiceNamespace": "sagemaker",
                "ResourceId": "endpoint/sentiment/variant/primary",
                "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
                "MinCapacity": 2,
                "MaxCapacity": 8,
            }
        ]
    },
}


def settings_with(changes: Mapping[str, Any]) -> Settings:
    """The settings with changes; ``a.b.c`` names a nested one, ``None`` removes it."""
    data: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    for path, value in changes.items():
        *folders, last = path.split(".")
        place = data
        for folder in folders:
            place = place.setdefault(folder, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return parse_settings(yaml.safe_dump(data))


def outcomes(
    check_id: str, aws: FakeAws, settings: Settings, *, region: str, fetched: bytes
) -> list[Result]:
    """The results of one check, where the image's configuration is what is fetched."""

    def fetch(url: str) -> bytes:
        assert url == CONFIG_URL
        return fetched

    context = PreflightContext(
        settings,
        list(planned_variants(settings)),
        Account(aws, region),
        fetch=fetch,
        resolve=lambda name: ADDRESSES if name == RUNTIME_NAME else [],
    )
    (found,) = checks(check_id)
    if not found.of_endpoint:
        return list(found.results(context))
    return [
        result for endpoint in context.endpoints for result in found.results(endpoint, endpoint.key)
    ]
