"""Signed URLs of SageMaker's OpenAI-compatible path, and how long a signature is good for.

``sagemaker-api-key-`` and, in base64, the URL that SigV4 signs for POST of
``sagemaker.amazonaws.com/?Action=CallWithBearerToken`` in its query, without ``https://`` and with
``&Version=1`` at its end. Its date and ``X-Amz-Expires``, at most 12 hours, say how long it is good;
the access key is in it, the secret is not. Source: sagemaker-core 2.27.0, `token_generator`.

What SageMaker answers to a bad one is not documented. Amazon Bedrock has the same kind of token, and
its words as users report them are taken: anomalyco/opencode#47073 (invalid, 403),
ai4s-research/open-science#53 (of another Region: the same), BerriAI/litellm's tests (expired).

Sources: IAM user guide, "Troubleshoot Signature Version 4 signing" (five minutes); S3 API reference,
"Error responses" and "Authenticating Requests: Using Query Parameters" (fifteen, and X-Amz-Expires);
EC2 API reference, "Error codes" (fifteen). The words for dates and lifetimes that cannot be read are
those that Swift's functional tests and dynalite recorded.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import email.utils
import functools
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

PREFIX = "sagemaker-api-key-"
EXPIRED = "Bearer Token has expired"
INVALID = "Authentication failed: Please make sure your API Key is valid."
OPENAI_PATH = re.compile(
    r"/endpoints/(?P<endpoint>[^/]+)(?:/inference-components/(?P<component>[^/]+))?"
    r"/openai/v1/(?P<rest>.*)"
)

_HOST = "sagemaker.amazonaws.com"
_LONGEST = 43_200  # seconds
_AHEAD = 300.0  # seconds that the signer's clock may be ahead, as for SigV4
_SCOPE = re.compile(r"(?P<key>[^/]+)/(?P<date>\d{8})/(?P<region>[a-z0-9-]+)/sagemaker/aws4_request")


class BadToken(Exception):
    """A token that opens nothing; the message tells nothing of what is in it."""


def _query(authorization: str) -> str:
    """Give the query of the signed URL in a header."""
    kind, _, token = authorization.partition(" ")
    if kind.lower() != "bearer" or not token.startswith(PREFIX):
        raise BadToken(INVALID)
    try:
        text = base64.b64decode(token.removeprefix(PREFIX).strip(), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise BadToken(INVALID) from None
    url, _, query = text.partition("?")
    if url.rstrip("/") != _HOST:
        raise BadToken(INVALID)
    return query


def region_of_token(authorization: str) -> str | None:
    """Read the Region that a token is for; None for what is none."""
    try:
        scope = dict(parse_qsl(_query(authorization))).get("X-Amz-Credential", "")
    except BadToken:
        return None
    found = _SCOPE.fullmatch(scope)
    return found["region"] if found else None


def key_and_session(authorization: str) -> tuple[str, str]:
    """Give the access key that signed a token, and the session token beside it if there is one."""
    given = dict(parse_qsl(_query(authorization)))
    key = given.get("X-Amz-Credential", "").partition("/")[0]
    return key, given.get("X-Amz-Security-Token", "")


def check_token(
    authorization: str, secret_of: Callable[[str], str | None], now: float | None = None
) -> None:
    """Check an Authorization header."""
    query = _query(authorization)
    given = dict(parse_qsl(query))
    scope = _SCOPE.fullmatch(given.get("X-Amz-Credential", ""))
    expires = given.get("X-Amz-Expires", "")
    right = {
        "Action": "CallWithBearerToken",
        "Version": "1",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-SignedHeaders": "host",
    }
    if (
        scope is None
        or any(given.get(name) != value for name, value in right.items())
        or not re.fullmatch(r"[0-9]{1,5}", expires)
        or not 1 <= int(expires) <= _LONGEST
    ):
        raise BadToken(INVALID)
    try:
        signed = calendar.timegm(time.strptime(given.get("X-Amz-Date", ""), "%Y%m%dT%H%M%SZ"))
    except ValueError:
        raise BadToken(INVALID) from None
    secret = secret_of(scope["key"])
    if secret is None or not hmac.compare_digest(
        _signature(query, secret, scope), given.get("X-Amz-Signature", "").encode()
    ):
        raise BadToken(INVALID)
    moment = time.time() if now is None else now
    if signed > moment + _AHEAD or not given["X-Amz-Date"].startswith(scope["date"]):
        raise BadToken(INVALID)
    if moment > signed + int(expires):
        raise BadToken(EXPIRED)


def _signature(query: str, secret: str, scope: re.Match[str]) -> bytes:
    """Sign the URL again. Source: IAM user guide, "Create a signed AWS API request"."""
    pairs = [pair for pair in query.split("&") if pair != "Version=1"]
    pairs = sorted(pair for pair in pairs if not pair.startswith("X-Amz-Signature="))
    nothing = hashlib.sha256(b"").hexdigest()
    request = f"POST\n/\n{'&'.join(pairs)}\nhost:{_HOST}\n\nhost\n{nothing}"
    key = f"AWS4{secret}".encode()
    for part in (scope["date"], scope["region"], "sagemaker", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    moment = dict(parse_qsl(query))["X-Amz-Date"]
    place = f"{scope['date']}/{scope['region']}/sagemaker/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{moment}\n{place}\n{digest}"
    return hmac.digest(key, text.encode(), "sha256").hex().encode()


_MINUTES = {"s3": 15, "ec2": 15}
_OTHERS = 5


class Untimely(NamedTuple):
    """Why a signature is not good now: a key of the table of errors, and the text."""

    error: str
    message: str


@functools.lru_cache(1024)
def _seconds(stamp: str) -> float | None:
    """Read a date of a signature: ISO 8601's basic form, or HTTP's."""
    try:
        if re.fullmatch(r"[0-9]{8}T[0-9]{4}[0-5][0-9]Z", stamp):
            return calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
        return email.utils.parsedate_to_datetime(stamp).timestamp()
    except (ValueError, TypeError, LookupError, ArithmeticError, OSError):
        return None


def _number(text: str) -> int | None:
    """Read a whole number that 64 bits hold; Python's own reading takes other scripts' digits."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def _stamp(seconds: float) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))


_NO_DATE = "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."
_NO_ISO_DATE = (
    "Date must be in ISO-8601 'basic format'. Got '{}'. See http://en.wikipedia.org/wiki/ISO_8601"
)
_NO_LONG_DATE = "X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\""
_WEEK = 604_800  # seconds
_LAST_OF_VERSION_2 = 2**31 - 1


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
    given: dict[str, str] = {}
    stamp = headers.get("x-amz-date") or headers.get("date", "")
    if "authorization" not in headers and "?" in target:
        given = dict(parse_qsl(target.partition("?")[2]))
        stamp = given.get("X-Amz-Date", "")
    signed = _seconds(stamp)
    if "AWSAccessKeyId" in given:
        return _check_url_of_version_2(given, now)
    if given and (problem := _problem_of_url(given, service)):
        return Untimely("malformed", problem)
    if signed is None:
        return Untimely("incomplete", _NO_ISO_DATE.format(stamp) if stamp else _NO_DATE)
    if "X-Amz-Expires" in given:
        if now > signed + int(given["X-Amz-Expires"]):
            return Untimely("url-expired", "Request has expired")
        if signed > now + minutes * 60:
            return Untimely("url-expired", "Request is not valid yet")
        return None
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


def _check_url_of_version_2(given: Mapping[str, str], now: float) -> Untimely | None:
    text = given.get("Expires", "")
    expires = _number(text)
    if expires is None or expires > _LAST_OF_VERSION_2:
        return Untimely("url-expired", f"Invalid date (should be seconds since epoch): {text}")
    return Untimely("url-expired", "Request has expired") if now > expires else None


def _problem_of_url(given: Mapping[str, str], service: str) -> str | None:
    """Say what is no date or lifetime in a signed URL; S3 wants both."""
    if service == "s3" and not {"X-Amz-Date", "X-Amz-Expires"} <= given.keys():
        return (
            "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, "
            "X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters."
        )
    date = given.get("X-Amz-Date", "")
    if not date.endswith("Z") or _seconds(date) is None:
        return _NO_LONG_DATE
    if "X-Amz-Expires" not in given:
        return None
    lasts = _number(given["X-Amz-Expires"])
    if lasts is None:
        return "X-Amz-Expires should be a number"
    if lasts < 0:
        return "X-Amz-Expires must be non-negative"
    if lasts > _WEEK:
        return (
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires "
            "must be less than 604800 seconds"
        )
    return None
