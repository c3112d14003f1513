"""Addresses of the Hub, and how a copy fails."""

from __future__ import annotations

import re
import socket
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9._:-]+")

Origin = tuple[str, str, int]


class StagingFailed(Exception):
    """A model is not staged: a code of the library's errors, and the problem in words."""

    def __init__(self, code: str, problem: str) -> None:
        super().__init__(f"{code}: {problem}")
        self.code, self.problem = code, problem


def origin_of(url: str) -> Origin:
    """Scheme, host and port: to whom a token may go.

    >>> origin_of("https://huggingface.co/gpt2") == origin_of("HTTPS://HuggingFace.co:443")
    True
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)


def is_guarded(url: str) -> bool:
    """Whether what is sent there can be read by nobody on the way: TLS, or this machine."""
    scheme, host, _ = origin_of(url)
    return scheme == "https" or (scheme == "http" and host in _LOOPBACK)


def has_plain_host(url: str) -> bool:
    """Whether all readers see the same host in it: urllib takes %31 for 1 before it connects."""
    parts = urlsplit(url)
    return "@" not in parts.netloc and _HOST.fullmatch(parts.hostname or "") is not None


def is_local(url: str) -> bool:
    """Whether it is an address of this machine alone: in Lambda the Runtime API has one."""
    host = origin_of(url)[1].rstrip(".")
    try:  # as resolvers read it: 127.1, 0x7f000001
        found = ip_address(host if ":" in host else socket.inet_aton(host))
    except (OSError, ValueError):
        return host.split(".")[-1] == "localhost"
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_loopback or found.is_link_local or found.is_unspecified


def hub_endpoint(url: str) -> str:
    """The Hub's endpoint without the slash at its end."""
    try:
        parts = urlsplit(url)
        guarded = is_guarded(url)
    except ValueError:  # a port that is none
        guarded = False
    if not guarded or not has_plain_host(url) or parts.query or parts.fragment:
        # Not the URL: who puts a password into it should not find it in a log.
        raise StagingFailed("LLE359", "the Hub's endpoint is no plain https:// address")
    return url.rstrip("/")


def file_url(endpoint: str, model: str, commit: str, path: str) -> str:
    """Where the Hub has a file of a commit."""
    return f"{endpoint}/{quote(model)}/resolve/{quote(commit)}/{quote(path)}"
