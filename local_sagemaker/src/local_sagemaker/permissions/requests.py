"""What an HTTP request asks for: service, operation and parameters, by botocore's models."""

from __future__ import annotations

import functools
import gzip
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moto.core.parse import PROTOCOL_PARSERS
from werkzeug.datastructures import Headers, MultiDict

from ..protocols import service_model
from .actions import is_known
from .conditions import NotJudged

_SIGNED_AS = {"monitoring": "cloudwatch", "states": "stepfunctions"}
"""Signing names that are not botocore's name of the service."""


@dataclass(frozen=True)
class Call:
    """A request of an API, and how its answers are written: json, query, ec2 or rest-..."""

    service: str
    operation: str
    protocol: str
    request: dict[str, Any] = field(default_factory=dict)


def read_call(
    signed_for: str, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> Call:
    """Read a request; NotJudged when it is none of the service's operations."""
    service = _SIGNED_AS.get(signed_for, signed_for)
    path, _, query = target.partition("?")
    path = "/" + path.lstrip("/")
    if headers.get("content-encoding") == "gzip" and service != "s3":
        body = gzip.decompress(body)
    values = MultiDict(urllib.parse.parse_qsl(query, keep_blank_values=True))
    places: dict[str, str] = {}
    model, named = service_model(service), headers.get("x-amz-target", "")
    protocol = "json" if named else str(model.metadata["protocol"])
    if named:
        operation = named.rpartition(".")[2]
    elif protocol.startswith("rest"):
        if service == "s3" and (bucket := bucket_of_host(headers.get("host", ""))):
            path = f"/{bucket}{path}"
        operation, places = _routed(service, method, path, values, headers)
    else:
        protocol = "ec2" if protocol == "ec2" else "query"
        text = body.decode("utf-8", "replace")
        values.update(urllib.parse.parse_qsl(text, keep_blank_values=True))
        operation = values.get("Action", "")
    if operation not in model.operation_names:
        raise NotJudged(f"the action {service}:{operation or method + ' ' + path}")
    shape = model.operation_model(operation)
    if service == "s3" and not (shape.input_shape and _reads_body(shape.input_shape)):
        body = b""  # an object's content is none of our business
    asked = {"headers": Headers(dict(headers)), "body": body, "values": values}
    asked |= {"url_params": places, "method": method, "url_path": path}
    try:
        parsed = PROTOCOL_PARSERS[protocol](shape).parse(asked)
    except Exception:
        parsed = {}  # what cannot be read the service itself refuses
    parsed = parsed if isinstance(parsed, dict) else {}
    return Call(service, operation, protocol, {k: v for k, v in parsed.items() if v is not None})


def bucket_of_host(host: str) -> str:
    """Give the bucket of a host name such as `bucket.localhost:4566`."""
    name = host.rpartition(":")[0] or host
    return name.removesuffix(".localhost") if name.endswith(".localhost") else ""


def _reads_body(shape: Any) -> bool:
    """Say whether an S3 operation has rights that stand in its body."""
    return shape.serialization.get("payload") == "Delete"


@dataclass(frozen=True)
class _Route:
    method: str
    path: re.Pattern[str]
    query: tuple[tuple[str, str | None], ...]
    headers: tuple[str, ...]
    name: str


@functools.cache
def _routes(service: str) -> list[_Route]:
    """Give the routes of a service with REST, those that ask for most first."""
    model = service_model(service)
    found = []
    for name in model.operation_names:
        operation = model.operation_model(name)
        # botocore's clients take S3's bucket out of the path, in the model that all share.
        path = operation.http.get("authPath", operation.http["requestUri"]).partition("?")[0]
        path = path.rstrip("/") or "/"
        query = operation.http["requestUri"].partition("?")[2]
        pattern = re.sub(r"\{(\w+)\+\}", r"(?P<\1>.+)", path)
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern)
        if service == "s3" and pattern.endswith("]+)"):
            pattern += "/?"
        wanted = [(n, v or None) for n, v in urllib.parse.parse_qsl(query, keep_blank_values=True)]
        needs: dict[str, list[str]] = {"querystring": [], "header": []}
        shape = operation.input_shape
        for member in getattr(shape, "required_members", []) if shape else []:
            how = shape.members[member].serialization
            if how.get("location") in needs:
                needs[how["location"]].append(how["name"])
        wanted += [(each, None) for each in needs["querystring"]]
        headers = tuple(each.lower() for each in needs["header"])
        method = operation.http["method"]
        found.append(_Route(method, re.compile(pattern), tuple(wanted), headers, name))
    # Of two names for one thing (old and new ones) the one whose rights are known is meant.
    return sorted(
        found, key=lambda r: (-len(r.query) - len(r.headers), not is_known(service, r.name))
    )


def _routed(
    service: str, method: str, path: str, values: Mapping[str, str], headers: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """Find the operation of a REST request, and what its path names."""
    for route in _routes(service):
        found = route.path.fullmatch(path) if route.method == method else None
        if (
            found
            and all(n in values and v in (None, values[n]) for n, v in route.query)
            and all(name in headers for name in route.headers)
        ):
            return route.name, {n: urllib.parse.unquote(v) for n, v in found.groupdict().items()}
    return "", {}
