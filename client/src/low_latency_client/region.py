"""The Region that a client signs for: its form, and whether the URLs lead there."""

from __future__ import annotations

import logging
import re
from difflib import get_close_matches
from typing import Any

import boto3

from .errors import rule
from .limits import REGION, REGION_NAME
from .timing import CLIENT_REGION
from .zone import ClientZone

_log = logging.getLogger(__name__)
#: AWS's own names, those of interface endpoints and those of zones alike.
_IN_HOST = re.compile(rf"\bsagemaker(?:-fips)?\.({REGION_NAME})\.", re.IGNORECASE)
#: How the name of a zone begins: us-east-1 of us-east-1a, us-west-2 of us-west-2-lax-1a.
_REGION_OF_ZONE = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-\d")

URL_OF_ANOTHER_REGION = rule(
    "LLC122",
    "a URL leads to another Region than the one that the client signs for",
    fix="Pass the URL's Region as region, or the URL of the client's Region. AWS takes a signature for "
    "its own Region alone.",
    source="/IAM/latest/UserGuide/reference_sigv-create-signed-request.html",
)


def region_of(session: boto3.Session, region: str | None) -> str:
    """Return the Region of the argument, or else the session's."""
    name = region or session.region_name
    if not name:
        raise CLIENT_REGION.error(got="none", allowed="the name of a Region", where="region")
    return checked_region(str(name))


def checked_region(name: str) -> str:
    """Return the name, or raise the error if it does not have the form of a Region's."""
    if re.fullmatch(REGION_NAME, name, re.ASCII):
        return name
    raise REGION.error(
        got=repr(name),
        allowed="a Region's code such as us-east-1",
        where="region",
        fix=_fix_of_region(name),
    )


def _fix_of_region(name: str) -> str:
    """Return what to write in place of a zone, capitals or underscores; empty if nothing is near."""
    zone = ClientZone.of(name)
    if zone is not None and zone.name:
        region = _REGION_OF_ZONE.match(zone.name)
        return f"Write {region[0]}: {name} is an Availability Zone." if region else ""
    if zone is not None:
        return f"Write the Region of {name}, which is an Availability Zone."
    near = name.strip().lower().replace("_", "-")
    return f"Write {near}." if re.fullmatch(REGION_NAME, near, re.ASCII) else ""


def warn_of_unknown_region(session: boto3.Session, region: str) -> None:
    """Log a warning for a Region that botocore does not know.

    It is no error: an old botocore does not know a new Region, and a private one is in no list.
    """
    known = _known_regions(session)
    if region not in known:
        near = " or ".join(get_close_matches(region, sorted(known), n=2))
        meant = f" Did you mean {near}?" if near else ""
        _log.warning("botocore knows no Region %s.%s", region, meant)


def _known_regions(session: Any) -> set[str]:
    return {
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("sagemaker-runtime", partition)
    }


def check_region_of_url(url: str, region: str, where: str) -> None:
    """Raise an error if AWS's host name has another Region; a custom name has none."""
    named = _IN_HOST.search(url)
    if named is not None and named[1].lower() != region:
        raise URL_OF_ANOTHER_REGION.error(
            got=f"{named[1]} in {url}", allowed=f"a URL in {region}", where=where
        )
