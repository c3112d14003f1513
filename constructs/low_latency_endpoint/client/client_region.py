"""The Region that a client signs for: its form, and whether the URLs lead there."""

from __future__ import annotations

import logging
import re
from difflib import get_close_matches
from typing import Any

import boto3

from ..errors import rule
from ..facts.limits import REGION
from ..facts.zones import region_of_zone
from .client_timing import CLIENT_REGION

_log = logging.getLogger(__name__)
#: AWS's own names, those of interface endpoints and those of zones alike.
_IN_HOST = re.compile(rf"\bsagemaker(?:-fips)?\.({REGION.regex})\.")

URL_OF_ANOTHER_REGION = rule(
    "LLC122",
    "a URL leads to another Region than the one that the client signs for",
    fix="Pass the URL's Region as region, or the URL of the client's Region. AWS takes a signature for "
    "its own Region alone.",
    source="/IAM/latest/UserGuide/reference_sigv-create-signed-request.html",
)


def region_of(session: boto3.Session, region: str | None) -> str:
    """The Region that was given, or else the session's."""
    name = region or session.region_name
    if not name:
        raise CLIENT_REGION.error(got="none", allowed="the name of a Region", where="region")
    return checked_region(str(name))


def checked_region(name: str) -> str:
    """The name, if it has the form of a Region's."""
    if zones := region_of_zone(name):
        raise REGION.rule.error(
            got=repr(name),
            allowed=REGION.allowed,
            where="region",
            fix=f"Write {zones}: {name} is one of its zones.",
        )
    REGION.check(name, "region")
    return name


def warn_of_unknown_region(session: boto3.Session, region: str) -> None:
    """Log a Region of which botocore does not know.

    No error: a botocore of last year knows no Region of this year, and a private one is in no list.
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
    """Raise where the host's name tells another Region; names of one's own tell none."""
    found = _IN_HOST.search(url)
    if found is not None and found[1] != region:
        raise URL_OF_ANOTHER_REGION.error(
            got=f"{found[1]} in {url}", allowed=f"a URL in {region}", where=where
        )
