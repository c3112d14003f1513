"""Asking a local AWS for what is no part of AWS: its clock, its runtime, its alarms."""

from __future__ import annotations

import urllib.request

from .admission import TOKEN_HEADER

__all__ = ["ask"]

# Not by the proxy of an environment: it would get the token, and does not know this localhost.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(url: str, token: str, path: str, body: bytes = b"") -> bytes:
    """POST to a control of the local AWS at a URL; gives the answer's body.

    Raises
    ------
    urllib.error.HTTPError
        When it refuses.
    """
    request = urllib.request.Request(
        f"{url}{path}", body, {TOKEN_HEADER: token}, method="POST"
    )
    # A clock that jumps a day works on 8,640 ticks meanwhile.
    with _opener.open(request, timeout=600) as answer:
        document: bytes = answer.read()
    return document
