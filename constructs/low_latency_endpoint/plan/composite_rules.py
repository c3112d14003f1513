"""How long the rule of a composite alarm may be."""

from __future__ import annotations

from ..errors import rule
from ..facts.limit_kinds import Range

COMPOSITE_RULE_LENGTH = Range(
    rule(
        "LLE736",
        "the rule of a composite alarm is longer than CloudWatch takes",
        fix="Watch less (fewer percentiles, fewer thresholds), or fewer variants on one endpoint; "
        "a shorter name of the stack makes each alarm's name shorter.",
        source="/AmazonCloudWatch/latest/APIReference/API_PutCompositeAlarm.html",
    ),
    "the length of a composite alarm's rule",
    1,
    10_240,
    "characters",
)
LONGEST_NAME = 255
_ADDED = 15  # two hyphens, and 13 characters at random


def generated_name_length(stack_name: int, logical_id: int) -> int:
    """Characters of a name that CloudFormation makes of a stack's name and a logical ID."""
    return min(stack_name + logical_id + _ADDED, LONGEST_NAME)
