"""What AWS takes of one stack's template: resources, outputs, lengths of policies and rules."""

from __future__ import annotations

from ..errors import rule
from .limit_kinds import Range, number_range

_QUOTAS = "/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"
_SPLIT = (
    "Move endpoints to a second stack; one that a settings file makes gets a second settings file. "
    "Both can share a VPC and its interface endpoint."
)

RESOURCES = Range(
    rule(
        "LLE384",
        "the stack has more resources than CloudFormation allows",
        fix=_SPLIT,
        source=_QUOTAS,
    ),
    "the number of resources",
    0,
    500,
    "resources",
)
OUTPUTS = Range(
    rule(
        "LLE385",
        "the stack has more outputs than CloudFormation allows",
        fix=_SPLIT,
        source=_QUOTAS,
    ),
    "the number of outputs",
    0,
    200,
    "outputs",
)
ROLE_POLICIES_LENGTH = Range(
    rule(
        "LLE378",
        "the inline policies of a role are longer than IAM takes",
        fix="Give some models or functions a role of their own: without a stated role, each gets "
        "a new one. Or move some to a second stack with another role.",
        source="/IAM/latest/UserGuide/reference_iam-quotas.html",
    ),
    "the length of a role's inline policies",
    0,
    10_240,
    "characters",
)
COMPOSITE_RULE_LENGTH = Range(
    rule(
        "LLE736",
        "the rule of a composite alarm is longer than CloudWatch takes",
        fix="Watch fewer percentiles, thresholds or variants. A shorter stack name makes the name "
        "of every alarm shorter.",
        source="/AmazonCloudWatch/latest/APIReference/API_PutCompositeAlarm.html",
    ),
    "the length of a composite alarm's rule",
    1,
    10_240,
    "characters",
)
ENDPOINT_POLICY_LENGTH = number_range(
    "LLE217",
    "the length of the endpoint policy",
    0,
    20_480,
    unit="characters",
    source="/vpc/latest/privatelink/vpc-limits-endpoints.html",
    fix="Name fewer endpoints, or pass endpoint_policy=False and limit the callers' IAM policies.",
)

LONGEST_ANSWER = 3_500
"""Characters of former names; CloudFormation takes 4,096 bytes of a custom resource's answer.

See https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
"""
