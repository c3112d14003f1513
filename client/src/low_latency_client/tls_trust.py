"""How a connection comes to be: which of a name's addresses answers, and whose word proves it."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.httpsession import get_cert_path


def tls_context(ca_file: str) -> ssl.SSLContext:
    """Return a client context that verifies servers, with this bundle read once."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except FileNotFoundError as error:  # which does not name the file
        raise FileNotFoundError(error.errno, error.strerror, ca_file) from error
    context.hostname_checks_common_name = False  # names stand in subjectAltName (RFC 9110, 4.3.4)
    return context


def trusted_authorities(session: boto3.Session) -> str:
    """Return the file that boto3 would use: AWS_CA_BUNDLE, the profile's, REQUESTS_CA_BUNDLE, its own."""
    configured = session._session.get_config_variable("ca_bundle")
    return str(get_cert_path(configured or os.environ.get("REQUESTS_CA_BUNDLE") or True))


def name_of(origin: str) -> tuple[str, int, bool]:
    """Return host and port of a URL, and whether it uses TLS."""
    parts = urlsplit(origin)
    secure = parts.scheme == "https"
    return parts.hostname or "", parts.port or (443 if secure else 80), secure


def connected(
    kind: type[socket.socket],
    addresses: Iterable[tuple[Any, ...]],
    options: Iterable[tuple[int, int, int]],
    secure: Callable[[Any], Any] | None,
    seconds_left: Callable[[], float | None],
) -> Any:
    """Return a connected socket; try the addresses of ``getaddrinfo`` one after the other."""
    failure: OSError | None = None
    for family, type_, protocol, _, address in addresses:
        connection: Any = kind(family, type_, protocol)
        try:
            for option in options:
                connection.setsockopt(*option)
            connection.settimeout(seconds_left())
            connection.connect(address)
            if secure is not None:
                connection.settimeout(seconds_left())
                connection = secure(connection)
        except BaseException as error:
            connection.close()
            # Another address has the same certificate, and after a time-out no time is left.
            if not isinstance(error, OSError) or isinstance(error, ssl.SSLError | TimeoutError):
                raise
            failure = error
        else:
            return connection
    raise failure or OSError("the name has no address")


def only_tickets_came(sock: ssl.SSLSocket) -> bool:
    """Whether what came on an idle connection are TLS's session tickets, which this reads.

    Else it is the peer's end, or an answer that nobody asked for.
    """
    timeout = sock.gettimeout()
    try:
        sock.settimeout(0)
        sock.recv(1)
    except ssl.SSLWantReadError:
        sock.settimeout(timeout)
        return True
    except OSError:
        return False
    return False
