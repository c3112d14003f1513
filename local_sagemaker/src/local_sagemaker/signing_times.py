"""How long a signature is good for: by the machine's clock, which is the signer's too.

Sources: IAM user guide, "Troubleshoot Signature Version 4 signing" (five minutes); S3 API reference,
"Error responses" and "Authenticating Requests: Using Query Parameters" (fifteen, and X-Amz-Expires);
EC2 API reference, "Error codes" (fifteen).
"""

from __future__ import annotations

import calendar
import email.utils
import functools
import re
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

_MINUTES = {"s3": 15, "ec2": 15}
_OTHERS = 5


class Untimely(NamedTuple):
    """Why a signature is not good now: a key of the table of errors, and the text."""

    error: str
    message: str


@functools.lru_cache(1024)
def _seconds(stamp: str) -> float | None:
    """Read a date of a signature: ISO 8601's basic form, or HTTP's."""
    if re.fullmatch(r"\d{8}T\d{6}Z", stamp):
        return calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
    try:
        return email.utils.parsedate_to_datetime(stamp).timestamp()
    except (ValueError, TypeError):
        return None


def _stamp(seconds: float) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))


def check_time(
    target: str, headers: Mapping[str, str], service: str, now: float | None = None
) -> Untimely | None:
    """Say why a signature is too old or too new; None when it is good.

    Examples
    --------
    >>> check_time("/", {"x-amz-date": "20260101T000000Z"}, "sqs", 1767226200.0)
    Untimely(error='expired', message='Signature expired: 20260101T000000Z is now earlier than
    20260101T000500Z (20260101T001000Z - 5 min.)')
    """
    now = time.time() if now is None else now
    minutes = _MINUTES.get(service, _OTHERS)
    if "authorization" not in headers and "?" in target:
        given = dict(parse_qsl(target.partition("?")[2]))
        if "AWSAccessKeyId" in given:  # signature version 2
            late = not given.get("Expires", "").isdigit() or now > int(given["Expires"])
            return Untimely("url-expired", "Request has expired") if late else None
        stamp, lasts = given.get("X-Amz-Date", ""), given.get("X-Amz-Expires", "")
        if lasts.isdigit():
            signed = _seconds(stamp)
            if signed is None or now > signed + int(lasts):
                return Untimely("url-expired", "Request has expired")
            if signed > now + minutes * 60:
                return Untimely("url-expired", "Request is not valid yet")
            return None
    else:
        stamp = headers.get("x-amz-date") or headers.get("date", "")
    signed = _seconds(stamp)
    if signed is None:
        return Untimely(
            "incomplete",
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.",
        )
    if abs(now - signed) <= minutes * 60:
        return None
    if service == "s3":
        return Untimely(
            "expired", "The difference between the request time and the current time is too large."
        )
    if service == "ec2":
        return Untimely("expired", "Request has expired.")
    at = _stamp(now)
    if signed < now:
        edge = _stamp(now - minutes * 60)
        text = f"Signature expired: {stamp} is now earlier than {edge} ({at} - {minutes} min.)"
    else:
        edge = _stamp(now + minutes * 60)
        text = f"Signature not yet current: {stamp} is still later than {edge} "
        text += f"({at} + {minutes} min.)"
    return Untimely("expired", text)
