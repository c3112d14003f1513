"""Asking a local AWS: boto3 clients that can only ever reach it, and its own controls.

Every client gets an explicit endpoint URL and the local AWS's own key, so neither an environment
variable nor a profile on the machine can turn a call towards a real account.
"""

from __future__ import annotations

import functools
import os
import threading
import urllib.request
from typing import Any

import boto3
import botocore.config
import botocore.session

from .admission import TOKEN_HEADER, Credentials, Session, credentials_at

ACCOUNT = "123456789012"  # the account that moto gives to a caller whose key no account has

OF_CLOUDFORMATION = "local-aws-cloudformation"  # in the user agent of what CloudFormation asks for

_lock = threading.Lock()
_making = threading.Lock()  # a session is not safe across threads, its clients are
_clients: dict[tuple[str, str, str, Session | None], Any] = {}


def new_client(
    service: str, region: str, url: str, credentials: Credentials | Session, agent: str = ""
) -> Any:
    """Make a client bound to `url`, which knows no profile, file, proxy or variable."""
    configuration = botocore.config.Config(
        # A retry would repeat a refusal that is final here, and slow every test down.
        retries={"max_attempts": 0},
        # "api.sagemaker.localhost" does not resolve everywhere.
        inject_host_prefix=False,
        s3={"addressing_style": "path"},
        max_pool_connections=32,
        connect_timeout=10,
        read_timeout=900,
        proxies={},
        user_agent_extra=agent,
    )
    with _making:
        return _session(region).client(
            service,
            endpoint_url=url,
            config=configuration,
            aws_access_key_id=credentials.access_key,
            aws_secret_access_key=credentials.secret_key,
            aws_session_token=getattr(credentials, "session_token", None),
        )


@functools.cache
def _session(region: str) -> Any:
    """Make a session, once: it keeps the services' large models."""
    core = botocore.session.Session(
        session_vars={
            "profile": (None, None, None, None),
            "config_file": (None, None, os.devnull, None),
            "credentials_file": (None, None, os.devnull, None),
        }
    )
    return boto3.session.Session(botocore_session=core, region_name=region)


def local_client(service: str, region: str, url: str, session: Session | None = None) -> Any:
    """Give the client with which the local AWS asks itself, by its own key or a role's session."""
    # Cached, as one costs 50 ms; apart from the user's, whose handlers would change what is asked.
    key = (service, region, url, session)
    with _lock:
        if key not in _clients:
            keys = session or credentials_at(url)
            _clients[key] = new_client(service, region, url, keys, OF_CLOUDFORMATION)
        return _clients[key]


def close_clients(url: str) -> None:
    """Close the cached clients of a local AWS that has stopped: its port may serve another."""
    with _lock:
        gone = [_clients.pop(key) for key in list(_clients) if key[2] == url]
    for client in gone:
        client.close()


# Not by the proxy of an environment: it would get the token, and does not know this localhost.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(url: str, token: str, path: str, body: bytes = b"") -> bytes:
    """POST to a control of the local AWS at a URL; gives the answer's body."""
    request = urllib.request.Request(f"{url}{path}", body, {TOKEN_HEADER: token}, method="POST")
    # A clock that jumps a day works on 8,640 ticks meanwhile.
    with _opener.open(request, timeout=600) as answer:
        document: bytes = answer.read()
    return document
