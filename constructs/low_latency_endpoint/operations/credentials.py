"""Who asks AWS, and where: the rule that every command has."""

from __future__ import annotations

from ..errors import rule

__all__ = ["CREDENTIALS"]

CREDENTIALS = rule(
    "LLE583", "AWS needs credentials and a region",
    mend="Give --profile and --region, or set AWS_PROFILE and AWS_REGION; aws configure makes a "
         "profile.",
    source="/cli/latest/userguide/cli-configure-quickstart.html",
)
