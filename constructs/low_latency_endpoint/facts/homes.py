"""Where a stack is, and where a thing is that it names by an ARN or as an image of ECR."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import rule
from .zones import partition_of

OTHER_PARTITION = rule(
    "LLE950",
    "a value names something in another partition of AWS",
    fix="Name one of the stack's partition.",
    source="/IAM/latest/UserGuide/reference-arns.html",
)
OTHER_REGION = rule(
    "LLE951",
    "a value names something in another Region",
    fix="Name one in the stack's Region, or change the Region.",
    source="/IAM/latest/UserGuide/reference-arns.html",
)
OTHER_ACCOUNT = rule(
    "LLE952",
    "a role belongs to another account",
    fix="Name a role of the stack's account: a role can be passed in its own account only.",
    source="/IAM/latest/UserGuide/id_roles_use_passrole.html",
)

_ARN = re.compile(
    r"arn:(?P<partition>[^:]*):(?P<service>[^:]*):(?P<region>[^:]*):(?P<account>\d*):.+"
)
_IMAGE = re.compile(r"(?P<account>\d{12})\.dkr[.-]ecr(-fips)?\.(?P<region>[a-z0-9-]+)\.[^/]+/.+")


class Home(NamedTuple):
    """Region and account, each empty where it is not known."""

    region: str
    account: str = ""

    @property
    def partition(self) -> str:
        """The partition of the Region; empty where that is not known."""
        return partition_of(self.region) if self.region else ""

    def check(self, named: str, where: str = "") -> None:
        """Raise where what a value names has to be at home, and is not.

        Only roles have to be of the account: others are shared by their policies. What is no ARN
        and no image of ECR passes.
        """
        found = _ARN.fullmatch(named) or _IMAGE.fullmatch(named)
        if found is None:
            return
        parts = {"service": "", **found.groupdict()}
        parts.setdefault("partition", partition_of(parts["region"]))
        pairs = [
            (OTHER_PARTITION, "partition ", parts["partition"], self.partition),
            (OTHER_REGION, "", parts["region"], self.region),
        ]
        if parts["service"] == "iam":
            pairs.append((OTHER_ACCOUNT, "account ", parts["account"], self.account))
        for broken, kind, its, own in pairs:
            if its and own and its != own:
                raise broken.error(
                    what=f"{named} is in {kind}{its}, but the stack is in {kind}{own}",
                    got=f"{kind}{its}",
                    allowed=f"{kind}{own}",
                    where=where,
                )
