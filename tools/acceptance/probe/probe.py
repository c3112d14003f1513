"""Runs in a Lambda function in one zone's subnet: what do names and endpoints answer there?

Standard library and boto3 only, and nothing of the library's.
"""

import json
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Look up, connect to and call each name.

    The event has ``names`` (kind to host), ``endpoint``, ``foreign`` (an endpoint of no one's) and
    ``calls``. What cannot be done becomes text under ``error``. An event with ``each`` (kind to
    endpoint) and ``request`` has each called once by the runtime's own name.
    """
    if "each" in event:
        client = _client(None)
        request = json.dumps(event["request"])
        return {kind: _answer(client, name, request) for kind, name in event["each"].items()}
    if os.environ.get("AWS_ENDPOINT_URL"):
        # A local AWS: its names lead nowhere, and nothing may reach out of the machine.
        found: dict[str, Any] = {
            kind: {"unavailable": "not available here"} for kind in event["names"]
        }
        found["regional"] = {**found.get("regional", {}), "invoked": _invoke(None, event)}
        return {"names": found, "foreign": {"unavailable": "not available here"}}
    names = {}
    for kind, host in event["names"].items():
        names[kind] = {
            "dns": _tried(_addresses, host),
            "tls": _tried(_certificate, host),
            "invoked": _invoke(f"https://{host}", event),
        }
    foreign = {"endpoint": event["foreign"], "calls": 1}
    return {"names": names, "foreign": _invoke(f"https://{event['names']['regional']}", foreign)}


def _tried(look: Callable[[str], Any], host: str) -> Any:
    try:
        return look(host)
    except OSError as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _addresses(host: str) -> list[str]:
    return sorted({str(entry[4][0]) for entry in socket.getaddrinfo(host, 443, socket.AF_INET)})


def _certificate(host: str) -> dict[str, Any]:
    """The certificate's names, after a handshake that verifies them against the host's."""
    context = ssl.create_default_context()
    with (
        socket.create_connection((host, 443), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        certificate: dict[str, Any] = secured.getpeercert() or {}
        return {
            "names": [entry[1] for entry in certificate["subjectAltName"]],
            "version": secured.version(),
        }


def _client(url: str | None) -> Any:
    return boto3.client(
        "sagemaker-runtime",
        endpoint_url=url,
        config=Config(connect_timeout=10, read_timeout=70, retries={"total_max_attempts": 1}),
    )


def _answer(client: Any, endpoint: str, request: str) -> str:
    """``ok``, or the error's code."""
    try:
        client.invoke_endpoint(EndpointName=endpoint, ContentType="application/json", Body=request)[
            "Body"
        ].read()
    except Exception as failure:
        return _code(failure)
    return "ok"


def _code(failure: Exception) -> str:
    response = getattr(failure, "response", None) or {}
    return str(response.get("Error", {}).get("Code", type(failure).__name__))


def _invoke(url: str | None, event: dict[str, Any]) -> dict[str, Any]:
    client = _client(url)
    served: dict[str, int] = {}
    error, errors = "", 0
    for _ in range(event["calls"]):
        try:
            answer = client.invoke_endpoint(
                EndpointName=event["endpoint"],
                ContentType="application/json",
                Body=json.dumps({"addresses": True}),
            )
            told = json.loads(answer["Body"].read())
            by = " ".join(told.get("addresses", []))
            served[by] = served.get(by, 0) + 1
        except Exception as failure:
            errors += 1
            error = _code(failure)
    return {"served": served, "errors": errors, "error": error}
