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
A signature's age is judged, a session's token with its end, and presigned URLs by how long they last.
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
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from .signatures import (
    EXPIRED,
    INVALID,
    OPENAI_PATH,
    BadToken,
    check_time,
    check_token,
    key_and_session,
)

if TYPE_CHECKING:
    from .runtime.service import Runtime

TOKEN_HEADER = "X-Local-Aws-Token"
TOKEN_VARIABLE = "LOCAL_SAGEMAKER_TOKEN"

_CONTROLS = ("/_local", "/moto-api")
_LETTERS = string.ascii_uppercase + "234567"
_IN_HEADER = re.compile(r"(?:Credential=|^AWS )([^/:,\s]+)")
_IN_QUERY = re.compile(r"[?&](?:X-Amz-Credential|AWSAccessKeyId)=([^&%/]+)")
_SCOPE = re.compile(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
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


@dataclass(frozen=True)
class Session:
    """Credentials of a role's session, for a process that runs with the role."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(repr=False)


NOBODY = Session("", "", "")  # for a process that has no credentials


class Refused(NamedTuple):
    """The answer to somebody who may not."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


Admit = Callable[[str, Mapping[str, str], int], "Refused | None"]
"""Judges a request by its target, its headers (in lower case) and the port it came to."""

# ------------------------------------------------------------------ the servers of this process

SERVED: dict[int, Runtime] = {}  # the runtime behind each of them, by its port


def runtime_at(url: str) -> Runtime | None:
    """Give the runtime behind our server at a URL; of one that has stopped, none."""
    return SERVED.get(urlsplit(url).port or 80)


def credentials_at(url: str) -> Credentials:
    """Give what our server at a URL asks for; of one that has stopped, what opens nothing."""
    runtime = runtime_at(url)
    return runtime.credentials if runtime is not None else Credentials.new()


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
            header = headers.get(TOKEN_HEADER.lower(), "")
            return None if _same(header, credentials.token) else _no_token()
        if OPENAI_PATH.fullmatch(path):
            return _judge_token(headers.get("authorization", ""), credentials)
        key = access_key(target, headers)
        if key is None:
            return _refuse("unsigned", target, headers)
        if not _same(key, credentials.access_key):
            if _issued(key) is None:
                return _refuse("unknown", target, headers, key=key)
            token = headers.get("x-amz-security-token") or _token_of_url(target)
            if wrong := _wrong_token(key, token):
                return _refuse(wrong, target, headers)
        untimely = check_time(target, headers, _family(target, headers))
        return untimely and _refuse(untimely.error, target, headers, untimely.message)

    return admit


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def access_key(target: str, headers: Mapping[str, str]) -> str | None:
    """Find the access key's id: of a signature's header, or of a URL that was signed."""
    authorization = headers.get("authorization")
    found = _IN_HEADER.search(authorization) if authorization else _IN_QUERY.search(target)
    return found[1] if found else None


def _issued(key: str) -> str | None:
    """Give the secret of a key that IAM or STS here have given to somebody; by any server here."""
    from moto.iam.models import iam_backends  # not for a model server, which needs no moto

    from .permissions.principals import each_backend

    found = (backend.access_keys.get(key) for backend in each_backend(iam_backends))
    active = (one.secret_access_key for one in found if one is not None and one.status == "Active")
    return next(active, None)


def _token_of_url(target: str) -> str:
    return dict(parse_qsl(target.partition("?")[2])).get("X-Amz-Security-Token", "")


def _wrong_token(key: str, token: str) -> str | None:
    """Say what is wrong with the token of a session's key; None for a good one or a user's."""
    from .permissions.principals import session_of

    session = session_of(key)
    if session is None:
        return None
    if not _same(token, session.session_token):
        return "bad-token"
    expires = session.expiration.replace(tzinfo=UTC)
    return "expired-token" if expires <= datetime.now(UTC) else None


def _judge_token(authorization: str, credentials: Credentials) -> Refused | None:
    """Judge a request to the OpenAI-compatible path; AWS documents no other way in than a token."""

    def secret_of(key: str) -> str | None:
        if _same(key, credentials.access_key):
            return credentials.secret_key
        return _issued(key)

    try:
        check_token(authorization, secret_of)
        key, token = key_and_session(authorization)
        if not _same(key, credentials.access_key) and (wrong := _wrong_token(key, token)):
            raise BadToken(EXPIRED if wrong == "expired-token" else INVALID)
    except BadToken as bad:
        return _json({"Message": str(bad)}, "application/json", "AccessDeniedException")
    return None


def _no_token() -> Refused:
    told = {
        "error": f"send the header {TOKEN_HEADER} with the token that this local AWS was "
        f"started with: it exports it as {TOKEN_VARIABLE}"
    }
    return Refused(403, [("content-type", "application/json")], json.dumps(told).encode())


# Codes and statuses: IAM API reference, "Common errors"; S3 and EC2 API references, "Error
# responses" and "Error codes". EC2's 401 is what its users report.
_INVALID = "The security token included in the request is invalid."
_EXPIRED = "The security token included in the request is expired"
_CREDENTIALS = "AWS was not able to validate the provided access credentials"
_ERRORS: dict[str, dict[str, tuple[int, str, str]]] = {
    "json": {
        "unknown": (403, "UnrecognizedClientException", _INVALID),
        "unsigned": (403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
        "bad-token": (403, "UnrecognizedClientException", _INVALID),
        "expired-token": (400, "ExpiredTokenException", _EXPIRED),
        "expired": (400, "InvalidSignatureException", ""),
        "url-expired": (400, "InvalidSignatureException", ""),
        "incomplete": (403, "IncompleteSignatureException", ""),
        "malformed": (403, "IncompleteSignatureException", ""),
    },
    "query": {
        "unknown": (403, "InvalidClientTokenId", _INVALID),
        "unsigned": (403, "MissingAuthenticationToken", "Request is missing Authentication Token"),
        "bad-token": (403, "InvalidClientTokenId", _INVALID),
        "expired-token": (403, "ExpiredToken", _EXPIRED),
        "expired": (403, "SignatureDoesNotMatch", ""),
        "url-expired": (403, "SignatureDoesNotMatch", ""),
        "incomplete": (403, "IncompleteSignature", ""),
        "malformed": (403, "IncompleteSignature", ""),
    },
    "ec2": {
        "unknown": (401, "AuthFailure", _CREDENTIALS),
        "unsigned": (401, "AuthFailure", _CREDENTIALS),
        "bad-token": (401, "AuthFailure", _CREDENTIALS),
        "expired-token": (400, "RequestExpired", "Request has expired."),
        "expired": (400, "RequestExpired", ""),
        "url-expired": (400, "RequestExpired", ""),
        "incomplete": (401, "AuthFailure", _CREDENTIALS),
        "malformed": (401, "AuthFailure", _CREDENTIALS),
    },
    "s3": {
        "unknown": (
            403,
            "InvalidAccessKeyId",
            "The AWS Access Key Id you provided does not exist in our records.",
        ),
        "unsigned": (403, "AccessDenied", "Access Denied"),
        "bad-token": (400, "InvalidToken", "The provided token is malformed or otherwise invalid."),
        "expired-token": (400, "ExpiredToken", "The provided token has expired."),
        "expired": (403, "RequestTimeTooSkewed", ""),
        "url-expired": (403, "AccessDenied", ""),
        "malformed": (400, "AuthorizationQueryParametersError", ""),
        "incomplete": (
            403,
            "AccessDenied",
            "AWS authentication requires a valid Date or x-amz-date header",
        ),
    },
}


def _family(target: str, headers: Mapping[str, str]) -> str:
    """Say how a request's service writes errors; an unsigned one is S3's, as moto has it."""
    scope = _SCOPE.search(headers.get("authorization", ""))
    service = scope[1] if scope else ""
    path, _, query = target.partition("?")
    if "x-amz-target" in headers:
        return "json"
    if service == "ec2":
        return "ec2"
    if (
        headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
        or "Action=" in query
        or service in ("route53", "cloudfront")
    ):
        return "query"
    if service in ("s3", "") and not path.endswith(("/invocations", "-response-stream")):
        return "s3"
    return "json"


def _refuse(
    error: str, target: str, headers: Mapping[str, str], message: str = "", key: str = ""
) -> Refused:
    """Refuse as the service would."""
    family = _family(target, headers)
    status, code, words = _ERRORS[family][error]
    if family == "json":
        named = {"__type": code} if "x-amz-target" in headers else {}
        kind = "application/x-amz-json-1.1" if named else "application/json"
        return _json({**named, "message": words or message}, kind, code, status)
    given = f"<AWSAccessKeyId>{escape(key)}</AWSAccessKeyId>" if key and family == "s3" else ""
    body = error_xml(family, code, words or message, given)
    return Refused(status, [("content-type", "text/xml")], body)


def _json(document: dict[str, str], content_type: str, code: str, status: int = 403) -> Refused:
    return Refused(
        status,
        [
            ("content-type", content_type),
            ("x-amzn-errortype", code),
            ("x-amzn-requestid", str(uuid.uuid4())),
        ],
        json.dumps(document).encode(),
    )


def without_keys(target: str) -> str:
    """Give a request's target as a log may have it: a signed URL carries its access key.

    Examples
    --------
    >>> without_keys("/b/k?X-Amz-Credential=AKIA1%2F20260101&X-Amz-Expires=60")
    '/b/k?X-Amz-Credential=...&X-Amz-Expires=60'
    """
    return _SECRETS.sub(r"\1...", target)


_FORMS = {
    "query": "<ErrorResponse><Error><Type>Sender</Type>{error}</Error>"
    "<RequestId>{request}</RequestId></ErrorResponse>",
    "ec2": "<Response><Errors><Error>{error}</Error></Errors><RequestID>{request}</RequestID>"
    "</Response>",
    "s3": "<Error>{error}<RequestId>{request}</RequestId></Error>",
}


def error_xml(form: str, code: str, message: str, more: str = "") -> bytes:
    """Write an error as the services do that answer in XML."""
    words = _NO_XML.sub("?", escape(message))
    error = f"<Code>{escape(code)}</Code><Message>{words}</Message>{more}"
    document = _FORMS[form].format(error=error, request=uuid.uuid4())
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document}'.encode()
