"""Measures the path from one client zone to the endpoint, once, as a caller in the zone takes it.

EventBridge starts it every minute. The environment variable ``CANARY`` says which names it calls, and
the folder ``payloads`` beside the code has the request. It prints one line in CloudWatch's embedded
metric format, with more in it than is published as metrics. It never logs a payload: of an answer it logs
headers that SageMaker writes, and the beginning of an error's text.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import botocore.exceptions
from botocore.awsrequest import AWSResponse

from .exchanges import READ_TIMEOUT, SEND, BoundedConnection, botocores, shown, tls_context
from .measurements import embedded
from .sender import client_of, of_the_model, payload_call, refusal, url_of

CONNECT_TIMEOUT = 2.0  # a path on which a SYN is lost for longer is one that is lost
CONNECTIONS = 3  # the shortest counts: a function that waits for its processor is no slow path
HTTPS = 443
TOLD = ("x-amzn-errortype", "x-amzn-invoked-production-variant", "x-amzn-requestid")
"""Headers that SageMaker writes itself. A container writes others, such as custom attributes, and may
repeat the request in them."""
_TOLD_CHARACTERS = 128


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Call each name once, and print what was seen."""
    settings = json.loads(os.environ["CANARY"])
    entry = measured(settings)
    print(json.dumps(entry | published_metrics(settings, entry)))
    return entry


def measured(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the path of each name took: ``zonal``, and ``callers`` for the name that callers use."""
    seen = {kind: _call(settings, name) for kind, name in settings["names"].items()}
    entry: dict[str, Any] = {"event": "canary"}
    zonal, callers = (seen.get(kind, {}).get("addresses") for kind in ("zonal", "callers"))
    if zonal and callers:
        entry["out_of_zone"] = not set(callers) <= set(zonal)
    return {**entry, "paths": seen}


def published_metrics(settings: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of an entry, as the embedded metric format has them."""
    paths = entry["paths"]
    first, last = next(iter(paths.values())), list(paths.values())[-1]
    values = {
        "connect": (first.get("connect_ms"), "Milliseconds"),
        # The name that callers use stands last, where they do not use the zonal one.
        "answer": (last.get("answer_ms") if last.get("status") == 200 else None, "Milliseconds"),
        "unreachable": (int(any(map(_is_lost, paths.values()))), "Count"),
        "refused": (int(any(path.get("refused") for path in paths.values())), "Count"),
        "out_of_zone": (entry.get("out_of_zone"), "Count"),
    }
    published = {
        settings["metrics"][what]: (float(value), unit)
        for what, (value, unit) in values.items()
        if value is not None
    }
    place = {"EndpointName": settings["endpoint"], "Zone": settings["zone"]}
    return embedded(settings["namespace"], place, published, time.time())


def _is_lost(path: Mapping[str, Any]) -> bool:
    """Whether a caller would have got nothing to use."""
    return "status" not in path or bool(path.get("refused"))


def _call(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """One request through one name: addresses, milliseconds of each step, status or error.

    ``refused`` says that an answer came which no caller could use, whatever it sends: AWS's own, such
    as by the policy of an interface endpoint, or that of something else on the path.
    """
    seen: dict[str, Any] = {"name": name}
    # A local AWS speaks no TLS; names and addresses are the same there.
    client = client_of(f"{urlsplit(url_of(name)).scheme}://{name}")
    events = client.meta.events

    def send(request: Any, **_: Any) -> AWSResponse:
        return _sent(request, (str(found[0][4][0]), HTTPS), seen)

    try:
        with _timed(seen, "dns_ms"):
            found = socket.getaddrinfo(name, HTTPS, socket.AF_INET, socket.SOCK_STREAM)
        seen["addresses"] = sorted({str(address[0]) for *_, address in found})
        events.register(SEND, send)
        try:
            payload_call(settings, client)(0)
        finally:
            events.unregister(SEND, send)
    except botocore.exceptions.ClientError as failure:
        seen["error"] = refusal(failure)[0]
        seen["refused"] = not (of_the_model(failure) or _of_the_payload(failure))
    except Exception as failure:
        seen["error"] = shown(failure)
    return seen


def _of_the_payload(failure: botocore.exceptions.ClientError) -> bool:
    """Whether SageMaker refused this request alone, such as one that names no inference component."""
    return bool(failure.response.get("Error", {}).get("Code") == "ValidationError")


def _sent(request: Any, address: tuple[str, int], seen: dict[str, Any]) -> AWSResponse:
    """The signed request, sent to an address on the last of some new connections; each step is timed."""
    url = urlsplit(request.url)
    connection = BoundedConnection(url)
    with contextlib.closing(connection):
        for _ in range(CONNECTIONS):
            connection.close()
            with _timed(seen, "connect_ms"):
                connection.sock = socket.create_connection(address, CONNECT_TIMEOUT)
        connection.sock.settimeout(READ_TIMEOUT)
        if url.scheme == "https":  # not in a local AWS
            context = tls_context()
            with _timed(seen, "tls_ms"):
                connection.sock = context.wrap_socket(connection.sock, server_hostname=url.hostname)
        with _timed(seen, "answer_ms"):
            with _timed(seen, "first_byte_ms"):
                answer = connection.ask(request)
            body = answer.body()
    seen["status"] = answer.status
    seen["refused"] = answer.status != 200
    seen["told"] = {
        name: value[:_TOLD_CHARACTERS] for name in TOLD if (value := answer.headers.get(name))
    }
    return botocores(request, answer, body)


@contextlib.contextmanager
def _timed(seen: dict[str, Any], step: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    took = round((time.perf_counter() - began) * 1000, 3)
    seen[step] = min(took, seen.get(step, took))
