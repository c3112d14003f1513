"""How long the inline policies of a role may be, and the names in them that AWS makes."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import ConfigurationError, rule
from ..facts.limit_kinds import Range
from .composite_rules import generated_name_length
from .model_rights import Own

IDS = {"vpc": 21, "subnet": 24, "security-group": 20}
"""Characters of the IDs that AWS makes."""
OF_ARN = 45
"""Characters of an ARN before the name: service, Region, account, kind of resource."""
LONGEST_NAME = 64
"""Of most that CloudFormation names: functions, roles."""
MADE_BUCKET = "x" * (OF_ARN + 40)
"""As long as the ARN of a bucket that CloudFormation names."""
_DIGEST = 8  # of the path, at the end of a logical ID


class _Named(NamedTuple):
    """An ARN of what CloudFormation names: its service, what is around the name, the longest."""

    service: str
    before: str
    longest: int
    after: str = ""


_NAMED = {
    "Function": _Named("lambda", "function:", LONGEST_NAME),
    "Logs": _Named("logs", "log-group:", 512, ":*"),
    "Queue": _Named("sqs", "", 80),
}

ROLE_POLICIES_LENGTH = Range(
    rule(
        "LLE378",
        "the inline policies of a role are longer than IAM takes",
        fix="Give some of them a role of their own: leave the role out, and one is made for each "
        "model or function. Or put them into a second stack with another role.",
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


def stack_id(stack_name: int) -> str:
    """An ID as long as that of a stack with a name of so many characters."""
    return "x" * (OF_ARN + stack_name + 37)


def made_arn(own: Own, logical_id: str, *, stack_name: int) -> str:
    """An ARN as long as that of a resource whose name CloudFormation makes."""
    name = generated_name_length(stack_name, len(logical_id))
    for kind, named in _NAMED.items():
        if logical_id[:-_DIGEST].endswith(kind):
            length = min(name, named.longest)
            text = logical_id[-length:].rjust(length, "x")  # two are not the same
            return own.arn(named.service, f"{named.before}{text}{named.after}")
    return "x" * (OF_ARN + min(name, LONGEST_NAME))
