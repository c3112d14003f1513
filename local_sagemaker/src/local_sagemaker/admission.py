"""Who may use a local AWS: the user who started it. No web page, no other user of the machine.

A socket on loopback is open to every page in a browser here and to every user of the machine, and
a local AWS runs programs. So a request has to show

- that no page sent it: a Host that is ours, so that no foreign name has been pointed at loopback,
  and neither Origin nor another site in Sec-Fetch-Site, which browsers set and pages cannot;
- for AWS's own calls an access key that was made at the start, or that this local AWS issued;
- for the local AWS's own controls a token.

The access key's id is enough, the signature is not computed: the id is as random as a secret (80
bits), is written nowhere but into the environment that the user gets, and travels over loopback
only, where nobody but root listens. What AWS does about a wrong signature cannot be tried here.
Bearer tokens, which the OpenAI-compatible path alone takes, are checked to the last bit: they are
handed around, and expire.
"""

from __future__ import annotations

import functools
import hmac
import json
import re
import secrets
import string
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from xml.sax.saxutils import escape

from .bearer_tokens import OPENAI_PATH, BadToken, check_token

TOKEN_HEADER = "X-Local-Aws-Token"
TOKEN_VARIABLE = "LOCAL_SAGEMAKER_TOKEN"

_CONTROLS = ("/_local", "/moto-api")
_LETTERS = string.ascii_uppercase + "234567"
_IN_HEADER = re.compile(r"(?:Credential=|^AWS )([^/:,\s]+)")
_IN_QUERY = re.compile(r"[?&](?:X-Amz-Credential|AWSAccessKeyId)=([^&%/]+)")
_SCOPE = re.compile(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/")
_SECRETS = re.compile(r"((?:X-Amz-(?:Credential|Signature|Security-Token)|AWSAccessKeyId)=)[^&\s]*")


@dataclass(frozen=True)
class Credentials:
    """What one local AWS asks for."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    token: str = field(repr=False)

    @classmethod
    def new(cls) -> Credentials:
        """Make random ones; the access key has the form of AWS's."""
        key = "AKIA" + "".join(secrets.choice(_LETTERS) for _ in range(16))
        return cls(key, secrets.token_urlsafe(30), secrets.token_urlsafe(24))


class Refused(NamedTuple):
    """The answer to somebody who may not."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


Admit = Callable[[str, Mapping[str, str], int], "Refused | None"]
"""Judges a request by its target, its headers (in lower case) and the port it came to."""

# ------------------------------------------------------------------ the servers of this process

_serving: dict[int, Credentials] = {}


def serve_with(port: int, credentials: Credentials | None) -> None:
    """Note what a server of this process asks for; None when it has stopped."""
    if credentials is None:
        _serving.pop(port, None)
    else:
        _serving[port] = credentials


def credentials_at(url: str) -> Credentials:
    """Give what the server of this process at a URL asks for.

    Work in the background may go on for a moment after its server has stopped: it gets some that
    open nothing.
    """
    return _serving.get(urlsplit(url).port or 80) or Credentials.new()


# ------------------------------------------------------------------------------------- web pages


@functools.lru_cache(1024)
def _is_ours(host: str, port: int) -> bool:
    name, colon, given = host.lower().rpartition(":")
    if port == 80 and (not colon or host.endswith("]")):  # HTTP's own port goes without saying
        name, given = host.lower(), "80"
    return given == str(port) and (
        name in ("localhost", "127.0.0.1", "[::1]") or name.endswith(".localhost")
    )


def refuse_pages(target: str, headers: Mapping[str, str], port: int) -> Refused | None:
    """Refuse what a web page may have sent: see Fetch Metadata (W3C) and Fetch (WHATWG)."""
    if not _is_ours(headers.get("host", ""), port):
        reason = f"this is localhost:{port}, not {headers.get('host') or 'a request without Host'}"
    elif "origin" in headers:
        reason = f"no web page is answered, and this came from one: {headers['origin']}"
    elif headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        reason = f"no web page is answered, and this came from one: {headers['sec-fetch-site']}"
    else:
        return None
    return Refused(
        403, [("content-type", "text/plain; charset=utf-8")], f"The local AWS: {reason}\n".encode()
    )


# ------------------------------------------------------------------------------------ other users


def admit_known(credentials: Credentials) -> Admit:
    """Give what admits the user of a local AWS, by access key or token, and no page."""

    def admit(target: str, headers: Mapping[str, str], port: int) -> Refused | None:
        refused = refuse_pages(target, headers, port)
        if refused is not None:
            return refused
        # moto looks at the decoded path; several slashes are one to its router.
        path = unquote(target.partition("?")[0]) if "%" in target else target
        if path.startswith("//"):
            path = "/" + path.lstrip("/")
        if path.startswith(_CONTROLS):
            given = headers.get(TOKEN_HEADER.lower(), "")
            return None if _same(given, credentials.token) else _no_token()
        if OPENAI_PATH.fullmatch(path):
            return _judge_token(headers.get("authorization", ""), credentials)
        key = _access_key(target, headers)
        if key is not None and (_same(key, credentials.access_key) or _issued(key) is not None):
            return None
        return _no_key(key, target, headers)

    return admit


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def _access_key(target: str, headers: Mapping[str, str]) -> str | None:
    """Find the access key's id: of a signature's header, or of a URL that was signed."""
    authorization = headers.get("authorization")
    found = _IN_HEADER.search(authorization) if authorization else _IN_QUERY.search(target)
    return found[1] if found else None


def _issued(key: str) -> str | None:
    """Give the secret of a key that IAM or STS here have given to somebody; by any server here."""
    from moto.iam.models import iam_backends  # not for a model server, which needs no moto

    found = (
        backend.access_keys.get(key)
        for account in list(iam_backends.values())
        for backend in list(account.values())
    )
    active = (one.secret_access_key for one in found if one is not None and one.status == "Active")
    return next(active, None)


def _judge_token(authorization: str, credentials: Credentials) -> Refused | None:
    """Judge a request to the OpenAI-compatible path; AWS documents no other way in than a token."""

    def secret_of(key: str) -> str | None:
        if _same(key, credentials.access_key):
            return credentials.secret_key
        return _issued(key)

    try:
        check_token(authorization, secret_of)
    except BadToken as bad:
        return _json({"Message": str(bad)}, "application/json", "AccessDeniedException")
    return None


def _no_token() -> Refused:
    told = {
        "error": f"send the header {TOKEN_HEADER} with the token that this local AWS was "
        f"started with: it exports it as {TOKEN_VARIABLE}"
    }
    return Refused(403, [("content-type", "application/json")], json.dumps(told).encode())


_INVALID = "The security token included in the request is invalid."


def _no_key(key: str | None, target: str, headers: Mapping[str, str]) -> Refused:
    """Refuse as the service would.

    Codes and 403: IAM API reference, "Common errors"; S3 API reference, "Error responses". EC2's
    401 is what its users report. Which service an unsigned request means nobody can know: it is
    S3's where nothing says otherwise, as moto has it.
    """
    scope = _SCOPE.search(headers.get("authorization", ""))
    service = scope[1] if scope else ""
    content = headers.get("content-type", "")
    path, _, query = target.partition("?")
    if "x-amz-target" in headers:
        code = "UnrecognizedClientException" if key else "MissingAuthenticationTokenException"
        told = {"__type": code, "message": _INVALID if key else "Missing Authentication Token"}
        return _json(told, "application/x-amz-json-1.1", code)
    if service == "ec2":
        return _xml(
            401,
            "<Response><Errors><Error><Code>AuthFailure</Code><Message>AWS was not "
            "able to validate the provided access credentials</Message></Error></Errors>"
            f"<RequestID>{uuid.uuid4()}</RequestID></Response>",
        )
    if (
        content.startswith("application/x-www-form-urlencoded")
        or "Action=" in query
        or service in ("route53", "cloudfront")
    ):
        code = "InvalidClientTokenId" if key else "MissingAuthenticationToken"
        message = _INVALID if key else "Request is missing Authentication Token"
        return _xml(
            403,
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code>"
            f"<Message>{message}</Message></Error>"
            f"<RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>",
        )
    if service in ("s3", "") and not path.endswith(("/invocations", "-response-stream")):
        code = "InvalidAccessKeyId" if key else "AccessDenied"
        message = (
            "The AWS Access Key Id you provided does not exist in our records."
            if key
            else "Access Denied"
        )
        given = f"<AWSAccessKeyId>{escape(key)}</AWSAccessKeyId>" if key else ""
        return _xml(
            403,
            f"<Error><Code>{code}</Code><Message>{message}</Message>{given}"
            f"<RequestId>{uuid.uuid4()}</RequestId></Error>",
        )
    code = "UnrecognizedClientException" if key else "MissingAuthenticationTokenException"
    told = {"message": _INVALID if key else "Missing Authentication Token"}
    return _json(told, "application/json", code)


def _json(document: dict[str, str], content_type: str, code: str) -> Refused:
    return Refused(
        403,
        [
            ("content-type", content_type),
            ("x-amzn-errortype", code),
            ("x-amzn-requestid", str(uuid.uuid4())),
        ],
        json.dumps(document).encode(),
    )


def _xml(status: int, document: str) -> Refused:
    return Refused(
        status,
        [("content-type", "text/xml")],
        f'<?xml version="1.0" encoding="UTF-8"?>\n{document}'.encode(),
    )


def without_keys(target: str) -> str:
    """Give a request's target as a log may have it: a signed URL carries its access key.

    Examples
    --------
    >>> without_keys("/b/k?X-Amz-Credential=AKIA1%2F20260101&X-Amz-Expires=60")
    '/b/k?X-Amz-Credential=...&X-Amz-Expires=60'
    """
    return _SECRETS.sub(r"\1...", target)
