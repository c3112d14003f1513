"""Names of S3 buckets: what S3 would refuse today, and what it has left over from before."""

from __future__ import annotations

import re

from ..errors import rule

# "General purpose bucket naming rules"
_TODAY = re.compile(r"(?!\d+\.\d+\.\d+\.\d+$)(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
# Same page: buckets made in us-east-1 before March 2018 "could have names that were up to 255
# characters long and included uppercase letters and underscores".
_OF_OLD = re.compile(r"[A-Za-z0-9._-]{3,255}")
_REGION_OF_OLD = "us-east-1"

BUCKET_NAME = rule(
    "LLE387",
    "the S3 bucket name is not valid",
    fix="Use 3 to 63 lower-case letters, digits, dots and hyphens, with a letter or digit at "
    "both ends.",
    source="/AmazonS3/latest/userguide/bucketnamingrules.html",
)


def bucket_of(uri: str) -> str | None:
    """The bucket that an ``s3://`` URI names; None for another scheme."""
    scheme, _, rest = uri.partition("://")
    return rest.partition("/")[0] if scheme == "s3" else None


def check_bucket(uri: str, region: str | None, where: str = "") -> None:
    """Raise for an ``s3://`` URI whose bucket cannot exist."""
    name = bucket_of(uri)
    if name is not None:
        check_bucket_name(name, region, where)


def check_bucket_name(name: str, region: str | None, where: str = "") -> None:
    """Refuse a name that no bucket has, as :func:`check_bucket` does."""
    if _TODAY.fullmatch(name):
        return
    old = region in (None, _REGION_OF_OLD)
    if not (old and _OF_OLD.fullmatch(name)):
        raise BUCKET_NAME.error(
            got=name,
            where=where,
            allowed="3 to 63 lower-case letters, digits, . and -"
            + (
                ", or a name from before March 2018 in us-east-1: 3 to 255 letters, digits and . _ -"
                if old
                else ""
            ),
        )


def doubtful_bucket(uri: str) -> str:
    """What is doubtful about the bucket of a URI that :func:`check_bucket` lets through."""
    name = bucket_of(uri)
    if name is None or _TODAY.fullmatch(name):
        return ""
    return (
        f"{name} can only be a bucket of before March 2018 in us-east-1: S3 makes no bucket of "
        "this name today"
    )
