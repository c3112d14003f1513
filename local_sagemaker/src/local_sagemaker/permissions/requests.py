"""What an HTTP request asks for, and which rights its operation needs (actions.txt)."""

from __future__ import annotations

import functools
import io
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import UnknownServiceError
from moto.core.parse import PROTOCOL_PARSERS
from moto.ec2.models import ec2_backends
from moto.kms.models import kms_backends
from moto.secretsmanager.models import secretsmanager_backends
from werkzeug.datastructures import Headers, MultiDict

from ..protocols import service_model
from .evaluator import NotJudged

_SECTION = re.compile(r"\[(\S+) (\S+)\]")
_KEY = re.compile(r"([\w-]+:[\w/-]+)=(.*)")
_PARAMETER = re.compile(r"\{([\w.]+)(?::(\w+))?\}")


@dataclass(frozen=True)
class Right:
    """One action on one resource, with the condition keys of the request."""

    action: str
    resource: str
    keys: Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class _Row:
    action: str
    resources: tuple[str, ...]
    keys: tuple[tuple[str, str], ...]
    prefix: str  # the service in the ARNs of its resources


@functools.cache
def _table() -> dict[str, dict[str, list[_Row]]]:
    table: dict[str, dict[str, list[_Row]]] = {}
    rows, prefix = {}, ""  # type: dict[str, list[_Row]], str
    for line in Path(__file__).with_name("actions.txt").read_text().splitlines():
        if section := _SECTION.fullmatch(line):
            rows, prefix = table.setdefault(section[1], {}), section[2]
        elif line and not line.startswith("#"):
            operation, action, *rest = line.split()
            keys = [found.groups() for each in rest if (found := _KEY.fullmatch(each))]
            resources = tuple(each for each in rest if not _KEY.fullmatch(each))
            row = _Row(action, resources, tuple((k.lower(), v) for k, v in keys), prefix)
            rows.setdefault(operation, []).append(row)
    return table


@functools.cache
def known_keys() -> frozenset[str]:
    """The condition keys that requests here bring, in lower case."""
    rows = (row for each in _table().values() for rows in each.values() for row in rows)
    return frozenset(key for row in rows for key, _ in row.keys)


def is_known(service: str, operation: str) -> bool:
    """Say whether the table names an operation, and not only how it begins."""
    return operation in _table().get(service, {})


def _rows(service: str, operation: str) -> list[_Row]:
    rows = _table().get(service, {})
    if operation in rows:
        return rows[operation]
    for name, found in rows.items():
        if name.endswith("*") and operation.startswith(name[:-1]):
            return found
    raise NotJudged(f"the action {service}:{operation}")


def rights(
    service: str, operation: str, request: Mapping[str, Any], region: str, account: str
) -> Iterator[Right]:
    """Give the rights that a request needs; NotJudged names an operation without a row."""
    rows = _rows(service, operation)
    place = {"region": region, "account": account}
    for row in rows:
        if row.action == "-":  # "No permissions are required to perform this operation"
            continue
        action = f"{row.prefix}:{operation}" if row.action == "=" else row.action
        keys: dict[str, str | tuple[str, ...]] = {}
        for name, template in row.keys:
            values = _filled(template, request, place)
            if values:
                plain = len(values) == 1 and not _is_list(template, request)
                keys[name] = values[0] if plain else tuple(values)
        for template in row.resources:
            optional, plain_template = template.startswith("?"), template.removeprefix("?")
            found = _filled(plain_template, request, place)
            if not found and optional and len(row.resources) + (row.action != "=") > 1:
                continue
            where = region if row.prefix != "iam" else ""
            for text in found or ["*"]:
                yield Right(action, _arn(text.partition("#")[0], row.prefix, where, account), keys)


def _arn(text: str, prefix: str, region: str, account: str) -> str:
    # A name may have been given as the whole ARN, which then stands within the template.
    if "arn:aws:" in text:
        text = text[text.rindex("arn:aws:") :]
        return text[: -len("/*")] if ":stack/" in text and text.endswith("/*") else text
    return text if text == "*" else f"arn:aws:{prefix}:{region}:{account}:{text}"


def _at(value: Any, path: list[str]) -> list[str]:
    """Give the values at a path, those of lists one by one."""
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in _at(each, path)]
    if path:
        return _at(value.get(path[0]), path[1:]) if isinstance(value, Mapping) else []
    return (
        []
        if value in (None, "")
        else [str(value).lower() if isinstance(value, bool) else str(value)]
    )


def _is_list(template: str, request: Mapping[str, Any]) -> bool:
    found = _PARAMETER.fullmatch(template)
    value: Any = request
    for name in found[1].split(".") if found else ():
        value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, list):
            return True
    return False


def _filled(template: str, request: Mapping[str, Any], place: Mapping[str, str]) -> list[str]:
    """Fill a template in, once for each value of a list; nothing when a parameter is missing."""
    filled = [""]
    end = 0
    for found in _PARAMETER.finditer(template):
        values = [place[found[1]]] if found[1] in place else _at(request, found[1].split("."))
        if found[2]:
            read = _READINGS[found[2]]
            values = [read(value, place) for value in values or _DEFAULTS.get(found[2], [])]
        literal = template[end : found.start()]
        filled = [f"{before}{literal}{value}" for before in filled for value in values]
        end = found.end()
    return [f"{before}{template[end:]}" for before in filled]


_Reading = Callable[[str, Mapping[str, str]], str]
_DEFAULTS = {"cluster": ["default"], "name": ["default"]}
"""What a missing cluster means. Source: ECS API reference."""


def _key_arn(value: str, place: Mapping[str, str]) -> str:
    """Give a key's ARN, whatever of KMS's four ways it is named by."""
    if value.startswith("arn:aws:kms:") and ":alias/" not in value:
        return value
    name = value.rpartition(":")[2]
    backend = kms_backends[place["account"]][place["region"]]
    if name.startswith("alias/"):
        name = backend.get_key_id_from_alias(name) or name
    return f"arn:aws:kms:{place['region']}:{place['account']}:key/{name}"


def _secret_arn(value: str, place: Mapping[str, str]) -> str:
    if value.startswith("arn:"):
        return value
    found = secretsmanager_backends[place["account"]][place["region"]].secrets
    arn = found[value].arn if value in found else ""
    return str(arn) or f"arn:aws:secretsmanager:{place['region']}:{place['account']}:secret:{value}"


def scaling_role(namespace: str, account: str) -> str:
    """Give the ARN of the role by which Application Auto Scaling scales a service's resources."""
    suffix = {"sagemaker": "SageMakerEndpoint", "ecs": "ECSService"}.get(namespace, namespace)
    return (
        f"arn:aws:iam::{account}:role/aws-service-role/{namespace}.application-autoscaling."
        f"amazonaws.com/AWSServiceRoleForApplicationAutoScaling_{suffix}"
    )


def _owned_arn(value: str, place: Mapping[str, str]) -> str:
    """Give the ARN of a VPC, or of a subnet or interface in one: another account may share it."""
    backend = ec2_backends[place["account"]][place["region"]]
    registers = (backend.vpcs, *list(backend.subnets.values()))
    owner = next((r[value].owner_id for r in registers if value in r), place["account"])
    kind = value.partition("-")[0].replace("eni", "network-interface")
    return f"arn:aws:ec2:{place['region']}:{owner}:{kind}/{value}"


_READINGS: dict[str, _Reading] = {
    "lower": lambda value, _: value.lower(),
    "name": lambda value, _: value.rpartition("/")[2],
    "path": lambda value, _: value if value.startswith(("/", "arn:")) else f"/{value}",
    "scaling": lambda value, place: scaling_role(value, place["account"]),
    "queue": lambda value, _: value.rpartition("/")[2],
    "source": lambda value, _: value.lstrip("/").partition("?")[0],
    "cluster": lambda value, place: (
        value
        if value.startswith("arn:")
        else f"arn:aws:ecs:{place['region']}:{place['account']}:cluster/{value}"
    ),
    "key": _key_arn,
    "owned": _owned_arn,
    "secret": _secret_arn,
}


SIGNED_AS = {
    "monitoring": "cloudwatch",
    "servicequotas": "service-quotas",
    "states": "stepfunctions",
}
"""Signing names that are not botocore's name of the service."""


@dataclass(frozen=True)
class Call:
    """A request of an API, and how its answers are written: json, query, ec2 or rest-..."""

    service: str
    operation: str
    protocol: str
    request: dict[str, Any] = field(default_factory=dict)


def body_of(environ: dict[str, Any]) -> bytes:
    """Read the body of a WSGI request, and leave it to be read again."""
    body: bytes = environ["wsgi.input"].read()
    environ["wsgi.input"] = io.BytesIO(body)
    return body


def headers_of(environ: Mapping[str, Any]) -> dict[str, str]:
    """Give the headers of a WSGI request, their names in lower case."""
    found = {
        name[5:].replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    if environ.get("CONTENT_TYPE"):
        found["content-type"] = environ["CONTENT_TYPE"]
    return found


def call_of(environ: dict[str, Any], signed_for: str) -> Call:
    """Read a WSGI request; NotJudged when it is none of the service's operations."""
    target = str(environ.get("REQUEST_URI") or environ.get("PATH_INFO", "/"))
    method, headers = environ["REQUEST_METHOD"], headers_of(environ)
    return read_call(signed_for, method, target, headers, body_of(environ))


def read_call(
    signed_for: str, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> Call:
    """Read a request; NotJudged when it is none of the service's operations."""
    service = SIGNED_AS.get(signed_for, signed_for)
    path, _, query = target.partition("?")
    path = "/" + path.lstrip("/")
    values = MultiDict(urllib.parse.parse_qsl(query, keep_blank_values=True))
    places: dict[str, str] = {}
    try:
        model, named = service_model(service), headers.get("x-amz-target", "")
    except UnknownServiceError:
        raise NotJudged(f"the service {service}") from None
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
    if service == "s3" and _is_object(shape):
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


def _is_object(operation: Any) -> bool:
    """Say whether the body of an S3 operation is an object's content."""
    return bool(operation.has_streaming_input)


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
    routes = []
    for name in model.operation_names:
        operation = model.operation_model(name)
        # botocore's clients take S3's bucket out of the path, in the model that all share.
        path = operation.http.get("authPath", operation.http["requestUri"]).partition("?")[0]
        path = path.rstrip("/") or "/"
        query = operation.http["requestUri"].partition("?")[2]
        pattern = re.sub(r"\{(\w+)\+\}", r"(?P<\1>.+)", path)
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern)
        if not pattern.endswith(".+)"):  # a key's own slashes count
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
        routes.append(_Route(method, re.compile(pattern), tuple(wanted), headers, name))
    # Of two names for one thing (old and new ones) the one whose rights are known is meant.
    return sorted(
        routes, key=lambda r: (-len(r.query) - len(r.headers), not is_known(service, r.name))
    )


def _routed(
    service: str, method: str, path: str, values: Mapping[str, str], headers: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """Find the operation of a REST request, and what its path names."""
    path = path if service == "s3" else path.rstrip("/") or "/"
    for route in _routes(service):
        found = route.path.fullmatch(path) if route.method == method else None
        if (
            found
            and all(n in values and v in (None, values[n]) for n, v in route.query)
            and all(name in headers for name in route.headers)
        ):
            return route.name, {n: urllib.parse.unquote(v) for n, v in found.groupdict().items()}
    return "", {}
