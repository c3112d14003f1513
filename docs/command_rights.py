"""The actions that each command calls, and the resources that AWS takes for each action.

``tests/operate/test_permissions_page.py`` runs the commands with these rights in the local AWS.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

_ENDPOINT = "arn:aws:sagemaker:REGION:ACCOUNT:endpoint/*"
_STACK = "arn:aws:cloudformation:REGION:ACCOUNT:stack/*"
_ALARM = "arn:aws:cloudwatch:REGION:ACCOUNT:alarm:*"

RESOURCES: Mapping[str, str] = {
    "cloudformation:DescribeStacks": _STACK,
    "cloudformation:GetTemplate": _STACK,
    "cloudformation:ListStackResources": _STACK,
    "cloudwatch:DescribeAlarmHistory": _ALARM,
    "cloudwatch:DescribeAlarms": _ALARM,
    "iam:GetRole": "arn:aws:iam::ACCOUNT:role/*",
    "iam:SimulatePrincipalPolicy": "arn:aws:iam::ACCOUNT:role/*",
    "iam:PassRole": "arn:aws:iam::ACCOUNT:role/JOB-ROLE",
    "sagemaker:DescribeEndpoint": _ENDPOINT,
    "sagemaker:DescribeEndpointConfig": "arn:aws:sagemaker:REGION:ACCOUNT:endpoint-config/*",
    "sagemaker:DescribeModel": "arn:aws:sagemaker:REGION:ACCOUNT:model/*",
    "sagemaker:InvokeEndpoint": _ENDPOINT,
    "sagemaker:InvokeEndpointWithResponseStream": _ENDPOINT,
    "sagemaker:UpdateEndpointWeightsAndCapacities": _ENDPOINT,
    "ssm:GetParameter": "arn:aws:ssm:REGION:ACCOUNT:parameter/cdk-bootstrap/*",
    "application-autoscaling:RegisterScalableTarget": (
        "arn:aws:application-autoscaling:REGION:ACCOUNT:scalable-target/*"
    ),
    "logs:FilterLogEvents": "arn:aws:logs:REGION:ACCOUNT:log-group:*",
    "s3:AbortMultipartUpload": "arn:aws:s3:::BUCKET/*",
    "s3:GetBucketLocation": "arn:aws:s3:::BUCKET",
    "s3:GetObject": "arn:aws:s3:::BUCKET/*",
    "s3:ListBucket": "arn:aws:s3:::BUCKET",
    "s3:PutObject": "arn:aws:s3:::BUCKET/*",
    "s3:ListBucketMultipartUploads": "arn:aws:s3:::BUCKET",
}
"""Those that take a resource; all others are allowed on ``*``."""

CONDITIONS: Mapping[str, Mapping[str, str]] = {
    "iam:PassRole": {"iam:PassedToService": "sagemaker.amazonaws.com"},
    "application-autoscaling:RegisterScalableTarget": {
        "application-autoscaling:service-namespace": "sagemaker"
    },
}
"""What limits an action, by condition key."""


@dataclass(frozen=True, eq=False)
class CommandRights:
    """What a command calls."""

    command: str
    always: tuple[str, ...]  # tried in the local AWS
    sometimes: Mapping[str, str] = field(default_factory=dict)  # by the case in which it is called

    @property
    def actions(self) -> list[str]:
        return sorted({*self.always, *self.sometimes}, key=str.lower)


_VPC = "`network.vpc_id`: an existing VPC"
_MANUAL = "a manual change is found: who made it"
_TOKENS = "alarms on tokens"
_UNNAMED = "an endpoint of the settings file without `endpoint_name`"
_SCHEDULED = "nothing else can change the number of instances"
_FIND_NAME = dict.fromkeys(
    (
        "cloudformation:DescribeStacks",
        "cloudformation:GetTemplate",
        "cloudformation:ListStackResources",
    ),
    _UNNAMED,
)

PREFLIGHT = CommandRights(
    "preflight",
    (
        "application-autoscaling:DescribeScalableTargets",
        "cloudformation:DescribeStacks",
        "cloudformation:GetTemplate",
        "cloudformation:ListStackResources",
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeRegions",
        "ec2:DescribeVpcEndpointServices",
        "ecr:BatchGetImage",
        "iam:GetRole",
        "iam:SimulatePrincipalPolicy",
        "lambda:GetAccountSettings",
        "s3:GetObject",
        "s3:ListBucket",
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "servicequotas:ListServiceQuotas",
        "ssm:GetParameter",
    ),
    {
        "cloudwatch:GetOTelEnrichment": _TOKENS,
        "ec2:DescribeFlowLogs": _VPC,
        "ec2:DescribeNetworkInterfaces": _VPC,
        "ec2:DescribeRouteTables": _VPC,
        "ec2:DescribeSecurityGroups": _VPC,
        "ec2:DescribeSubnets": _VPC,
        "ec2:DescribeVpcAttribute": _VPC,
        "ec2:DescribeVpcEndpoints": _VPC,
        "ec2:DescribeVpcs": _VPC,
        "ecr:GetDownloadUrlForLayer": "the image's manifest does not name its architecture",
        "kms:DescribeKey": "model data or topic with a KMS key",
        "logs:FilterLogEvents": "an existing VPC with flow logs in CloudWatch",
        "route53:ListHostedZonesByVPC": _VPC,
        "s3:GetBucketLocation": "S3 does not tell the bucket's Region otherwise",
        "sagemaker:ListEndpoints": _VPC,
        "servicequotas:ListAWSDefaultServiceQuotas": "Service Quotas has no applied value",
        "sns:GetTopicAttributes": "`alarm_topic_arn`, unless the topic's policy allows it",
    },
)
VERIFY = CommandRights(
    "verify",
    (
        "application-autoscaling:DescribeScalableTargets",
        "application-autoscaling:DescribeScalingActivities",
        "application-autoscaling:DescribeScalingPolicies",
        "cloudformation:DescribeStacks",
        "cloudformation:GetTemplate",
        "cloudformation:ListStackResources",
        "cloudwatch:DescribeAlarmHistory",
        "cloudwatch:DescribeAlarms",
        "cloudwatch:GetMetricData",
        "cloudwatch:ListMetrics",
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcEndpoints",
        "ec2:DescribeVpcs",
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:DescribeModel",
    ),
    {
        "cloudformation:DescribeStackResources": "you name an endpoint, not a stack",
        "cloudtrail:LookupEvents": _MANUAL,
        "cloudwatch:GetOTelEnrichment": _TOKENS,
    },
)
LIST = CommandRights(
    "list",
    (
        "application-autoscaling:DescribeScalableTargets",
        "application-autoscaling:DescribeScalingPolicies",
        "cloudformation:DescribeStackResources",
        "cloudformation:GetTemplate",
        "cloudwatch:DescribeAlarms",
        "cloudwatch:GetMetricData",
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:DescribeModel",
        "sagemaker:ListEndpoints",
    ),
    {
        "cloudformation:DescribeStacks": "a manual change is found",
        "cloudformation:ListStackResources": "the template does not name the endpoint",
    },
)
DIAGNOSE = CommandRights(
    "diagnose",
    (
        "application-autoscaling:DescribeScalableTargets",
        "application-autoscaling:DescribeScalingActivities",
        "application-autoscaling:DescribeScalingPolicies",
        "cloudformation:DescribeStackResources",
        "cloudformation:GetTemplate",
        "cloudwatch:DescribeAlarmHistory",
        "cloudwatch:DescribeAlarms",
        "cloudwatch:GetMetricData",
        "cloudwatch:ListMetrics",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeVpcEndpoints",
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:DescribeModel",
    ),
    {
        "cloudformation:DescribeStacks": "a manual change is found",
        "cloudformation:ListStackResources": "the template does not name the endpoint",
        "cloudtrail:LookupEvents": _MANUAL,
        "logs:DescribeLogGroups": "the endpoint is being created, or failed",
    },
)
LOAD_TEST = CommandRights(
    "load-test",
    (
        "application-autoscaling:DescribeScalableTargets",
        "cloudwatch:GetMetricData",
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:InvokeEndpoint",
    ),
    {
        "application-autoscaling:DescribeScheduledActions": _SCHEDULED,
        "sagemaker:InvokeEndpointWithResponseStream": "`--stream`, `--tokens`",
        "sagemaker:CallWithBearerToken": "`--openai`",
        **_FIND_NAME,
    },
)
COMPARE_ROUTING = CommandRights(
    "compare-routing",
    (
        "application-autoscaling:DescribeScalableTargets",
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:DescribeModel",
        "sagemaker:InvokeEndpoint",
    ),
    {
        "application-autoscaling:DescribeScheduledActions": _SCHEDULED,
        "sagemaker:InvokeEndpointWithResponseStream": "`--stream`, `--tokens`",
        "sagemaker:CallWithBearerToken": "`--openai`",
        **_FIND_NAME,
    },
)
RECOMMEND = CommandRights(
    "recommend",
    (),
    {
        "sagemaker:DescribeEndpoint": "starting a job",
        "sagemaker:DescribeEndpointConfig": "starting a job",
        "sagemaker:DescribeModel": "starting a job",
        "sagemaker:CreateInferenceRecommendationsJob": "starting a job",
        "iam:PassRole": "starting a job",
        "sagemaker:DescribeInferenceRecommendationsJob": "waiting, `--job`",
        **_FIND_NAME,
    },
)
OPTIMIZE = CommandRights(
    "optimize",
    (),
    {
        "sagemaker:CreateOptimizationJob": "starting a job",
        "iam:PassRole": "starting a job",
        "sagemaker:DescribeOptimizationJob": "waiting, `--job`",
    },
)
STAGE = CommandRights(
    "stage",
    ("s3:GetObject", "s3:ListBucket", "s3:ListBucketMultipartUploads", "s3:PutObject"),
    {"s3:AbortMultipartUpload": "an upload in parts fails, or an earlier one did not end"},
)
PLAN_FROM_CANARY = CommandRights(
    "plan --from-canary",
    (
        "cloudwatch:GetMetricData",
        "cloudwatch:ListMetrics",
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
    ),
    _FIND_NAME,
)

READING = (PREFLIGHT, VERIFY, LIST, DIAGNOSE)
COMMANDS = (*READING, LOAD_TEST, COMPARE_ROUTING, RECOMMEND, OPTIMIZE, STAGE, PLAN_FROM_CANARY)
CAPACITY = (
    "application-autoscaling:RegisterScalableTarget",
    "sagemaker:DescribeEndpoint",
    "sagemaker:DescribeEndpointConfig",
    "sagemaker:UpdateEndpointWeightsAndCapacities",
)
"""To change instances and weights by hand. Source: SageMaker developer guide, "Auto scaling
prerequisites": Application Auto Scaling asks for SageMaker's actions too."""


def policy(actions: list[str]) -> dict[str, object]:
    """An identity policy that allows the actions: a statement for each resource and condition."""
    groups: dict[tuple[str, str], list[str]] = {}
    for action in actions:
        keys = CONDITIONS.get(action, {})
        groups.setdefault((RESOURCES.get(action, "*"), json.dumps(keys)), []).append(action)
    return {
        "Version": "2012-10-17",
        "Statement": [
            _statement(allowed, resource, json.loads(keys))
            for (resource, keys), allowed in sorted(groups.items())
        ],
    }


def _statement(actions: list[str], resource: str, keys: Mapping[str, str]) -> dict[str, object]:
    statement: dict[str, object] = {"Effect": "Allow", "Action": actions, "Resource": resource}
    if keys:
        statement["Condition"] = {"StringEquals": keys}
    return statement
