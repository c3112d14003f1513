"""How long the inline policies of a role may be."""

from __future__ import annotations

from ..errors import ConfigurationError, rule
from .limits import Range

IDS = {"vpc": 21, "subnet": 24, "security-group": 20}
"""Characters of the IDs that AWS makes."""
OF_ARN = 45
"""Characters of an ARN before the name: service, Region, account, kind of resource."""
LONGEST_NAME = 64
"""Of most that CloudFormation names: functions, roles."""

ROLE_POLICIES_LENGTH = Range(
    rule(
        "LLE378",
        "the inline policies of a role are longer than IAM takes",
        fix="Give some of them a role of their own: leave the role out, and one is made for each "
        "model. Or put them into a second stack with another role.",
        source="/IAM/latest/UserGuide/reference_iam-quotas.html",
    ),
    "the length of a role's inline policies",
    0,
    10_240,
    "characters",
)


def too_long(length: int, *, fits: int, where: str) -> ConfigurationError:
    """The refusal, with how many fit."""
    return ROLE_POLICIES_LENGTH.rule.error(
        got=f"{length:,} characters for {fits + 1} endpoints",
        allowed=f"10,240 characters: {fits} of these endpoints fit, less what else the role has",
        where=where,
    )
