"""Bearer tokens for SageMaker's OpenAI-compatible path, made here from the caller's credentials.

The path ``/endpoints/{name}/openai/v1`` of the runtime's host takes no signature but a token: a
presigned request for ``CallWithBearerToken``, as AWS's own SDK makes it (sagemaker-core,
``token_generator``). Making one asks nobody and costs nothing.

A token is worth its signer's rights: whoever holds it may call ``sagemaker:CallWithBearerToken``
paths as that principal until it expires or the credentials that signed it do. So it is short-lived,
renewed here, and shows itself in no ``repr``.

This module imports neither openai nor httpx.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import time
from datetime import timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import boto3
from botocore.credentials import Credentials

from .arguments import checked, checked_class, duration
from .errors import rule
from .limits import Range
from .region import checked_region, region_of
from .signing import CredentialsSource, Sigv4Signer, held_credentials
from .timing import CLIENT_CREDENTIALS, CLIENT_REGION
from .zone import checked_origin

__all__ = ["BearerToken", "BearerTokens", "bearer_token", "openai_base_url"]

_PAGE = "/sagemaker/latest/dg/realtime-endpoints-openai-compatible.html"
_HOST = "sagemaker.amazonaws.com"
_PREFIX = "sagemaker-api-key-"
_RENEW_SECONDS = 60.0
#: Short, as AWS asks; long enough for a clock that is wrong by minutes, and for a renewal missed.
SHORT = timedelta(minutes=5)

TOKEN_LIFETIME = Range(
    rule(
        "LLC113",
        "the lifetime of a bearer token is out of range",
        fix="Give a short lifetime, such as timedelta(minutes=5). A new token is free, and a "
        "leaked token works until it expires.",
        source=_PAGE,
    ),
    1,
    43_200,
    "seconds",
)


class BearerToken(str):
    """A token as text; its ``repr``, as tracebacks and debuggers print it, does not tell it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<bearer token>"


@checked
def bearer_token(
    credentials: CredentialsSource | boto3.Session, region: str, expires: timedelta | str = SHORT
) -> BearerToken:
    """A token for ``Authorization: Bearer ...`` on the OpenAI-compatible path.

    Examples
    --------
    >>> session = boto3.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    >>> token = bearer_token(session, "us-east-1")
    >>> token
    <bearer token>
    >>> token.startswith("sagemaker-api-key-")
    True
    """
    source: Any = credentials
    if hasattr(source, "get_credentials"):  # a session
        source = source.get_credentials()
    return _token(source, checked_region(region), duration(expires, "expires"))


def _token(source: CredentialsSource | None, region: str, expires: timedelta) -> BearerToken:
    lifetime = expires.total_seconds()
    seconds = TOKEN_LIFETIME.check(int(lifetime) if lifetime.is_integer() else lifetime, "expires")
    if source is None:
        raise CLIENT_CREDENTIALS.error(
            got="none", allowed="any AWS credentials", where="credentials"
        )
    return BearerToken(
        _PREFIX + base64.b64encode(_presigned(source, region, int(seconds))).decode()
    )


def _presigned(credentials: CredentialsSource, region: str, seconds: int) -> bytes:
    """The presigned request, without its scheme and with the token's version.

    The same bytes as botocore's ``SigV4QueryAuth`` makes, which logs what they are made of.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    signing = Sigv4Signer(credentials, region=region).signing_key(stamp[:8])
    access_key, _, session_token = signing.credentials
    said = {
        "Action": "CallWithBearerToken",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{access_key}/{signing.scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": "host",
    }
    if session_token:
        said["X-Amz-Security-Token"] = session_token
    pairs = [f"{name}={quote(value, safe='-._~')}" for name, value in said.items()]
    canonical = (
        f"POST\n/\n{'&'.join(sorted(pairs))}\nhost:{_HOST}\n\nhost\n{sha256(b'').hexdigest()}"
    )
    to_sign = (
        f"AWS4-HMAC-SHA256\n{stamp}\n{signing.scope}\n{sha256(canonical.encode()).hexdigest()}"
    )
    signature = hmac.digest(signing.key, to_sign.encode(), "sha256").hex()
    return f"{_HOST}/?{'&'.join(pairs)}&X-Amz-Signature={signature}&Version=1".encode()


@checked_class
class BearerTokens:
    """Tokens that stay fresh: a new one each minute, at the first request that needs it.

    Safe across threads. Call it for a token: openai's ``OpenAI(api_key=tokens)`` does, before each
    request; ``AsyncOpenAI`` takes ``api_key=tokens.later``.

    Parameters
    ----------
    session : boto3.Session, optional
        Whose credentials sign; a new one by default.
    region : str, optional
        The endpoint's; by default the session's.
    expires : timedelta or str, optional
        How long a token is valid, 1 second to 12 hours; by default 5 minutes.

    Raises
    ------
    ConfigurationError
        ``LLC108``, ``LLC109``, ``LLC113``, ``LLC120``, ``LLC121``; ``LLC125``, ``LLC124``.

    Examples
    --------
    >>> tokens = BearerTokens(boto3.Session("AKIDEXAMPLE", "secret", region_name="us-east-1"))
    >>> tokens
    BearerTokens(region='us-east-1', expires=300 s)
    >>> tokens() is tokens()  # of the same minute
    True
    """

    def __init__(
        self,
        session: boto3.Session | None = None,
        region: str | None = None,
        *,
        expires: timedelta | str = SHORT,
    ) -> None:
        session = session or boto3.Session()
        self.region: str = region_of(session, region)
        self.expires: timedelta = duration(expires, "expires")
        self._credentials = session.get_credentials()
        self._renew_seconds = min(_RENEW_SECONDS, self.expires.total_seconds() / 2)
        self._latest = self._new_token()

    def __repr__(self) -> str:
        return f"BearerTokens(region={self.region!r}, expires={self.expires.total_seconds():g} s)"

    def _new_token(self) -> tuple[BearerToken, float]:
        """Return a token and the time now; if the provider fails, by the credentials that are valid."""
        now = time.monotonic()
        try:
            return _token(self._credentials, self.region, self.expires), now
        except Exception:  # of any provider
            valid, ends = held_credentials(self._credentials)
            if ends <= time.time():
                raise
        source = Credentials(valid.access_key, valid.secret_key, valid.token)
        return _token(source, self.region, self.expires), now

    def _is_old(self) -> bool:
        return time.monotonic() - self._latest[1] >= self._renew_seconds

    def __call__(self) -> BearerToken:
        """The token of now; may ask the network when the credentials have to be renewed."""
        if self._is_old():
            self._latest = self._new_token()  # one assignment: a thread sees the old or the new
        return self._latest[0]

    async def later(self) -> BearerToken:
        """The same for asyncio: what may ask the network does so in a thread."""
        return await asyncio.to_thread(self) if self._is_old() else self._latest[0]

    def authorize(self, request: Any) -> Any:
        """Set the header of a request: ``httpx.Client(auth=tokens.authorize)``."""
        request.headers["Authorization"] = f"Bearer {self()}"
        return request


@checked
def openai_base_url(
    endpoint_name: str,
    *,
    region: str = "",
    url: str = "",
    inference_component: str | None = None,
    allow_plain_http: bool = False,
) -> str:
    """The ``base_url`` that openai's SDK needs.

    Parameters
    ----------
    endpoint_name : str
        The endpoint.
    region : str
        For AWS's own name of the runtime, which private DNS answers with the interface endpoint.
    url : str
        In its place: the stack's output ``RegionalUrl`` or ``ZonalUrl-...``.
    inference_component : str, optional
        Of an endpoint with several models.
    allow_plain_http : bool, optional
        Whether ``http://`` may lead to another machine, where the token can be read on the way; by
        default only to this one.

    Raises
    ------
    ConfigurationError
        ``LLC107`` or ``LLC110`` for a URL; ``LLC108`` with neither or both of ``region`` and ``url``.

    Examples
    --------
    >>> openai_base_url("chat", region="us-east-1")
    'https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/chat/openai/v1'
    """
    if bool(region) is bool(url):
        got = "both" if region else "neither"
        raise CLIENT_REGION.error(got=got, allowed="region or url", where="region")
    if not url:
        checked_region(region)
        url = f"https://runtime.sagemaker.{region}.amazonaws.com"
    path = f"/endpoints/{quote(endpoint_name, safe='')}"
    if inference_component:
        path += f"/inference-components/{quote(inference_component, safe='')}"
    return f"{checked_origin(url, 'url', allow_plain_http=allow_plain_http)}{path}/openai/v1"
