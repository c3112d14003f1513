"""AWS's wire formats: moto reads and writes them, by botocore's service models.

Two are needed: `query` (CloudFormation) and `json` (SageMaker, Application Auto Scaling). What AWS
refuses of a JSON request before it comes to the service is refused here: moto does not look.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
import urllib.parse
import uuid
from datetime import datetime
from typing import Any

import botocore.loaders
from botocore.model import Shape
from moto.core.model import ServiceModel
from moto.core.parse import QueryParser
from moto.core.serialize import JSONSerializer, QuerySerializer, SerializationContext

from .admission import error_xml
from .request_rules import problems_of_document, problems_of_shape

_loader = botocore.loaders.create_loader()


@functools.cache
def service_model(service: str) -> ServiceModel:
    # Not from a session: that would read the user's profile.
    return ServiceModel(_loader.load_service_model(service, "service-2"), service)


class ServiceError(Exception):
    """A refusal, as the service would send it."""

    def __init__(self, message: str, code: str = "ValidationError", status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status


class Invalid(ServiceError):
    """A ValidationException: what the services with JSON make of most mistakes."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "ValidationException")


# ------------------------------------------------------------------------------------------ query


def queried_operation(body: bytes, query_string: str) -> str:
    """Give the operation that a query request names; what cannot be read names none."""
    text = body.decode("utf-8", "replace") or query_string
    return dict(urllib.parse.parse_qsl(text)).get("Action", "")


def parse_query(body: bytes, query_string: str, service: str) -> tuple[str, dict[str, Any]]:
    """Read a query request; gives the operation's name and its parameters."""
    try:
        text = body.decode("utf-8") or query_string
    except UnicodeDecodeError as error:
        raise ServiceError(f"The request is no UTF-8: {error}") from None
    flat = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
    name = flat.pop("Action", "")
    flat.pop("Version", None)
    model = service_model(service)
    if name not in model.operation_names:
        raise ServiceError(f"Could not find operation {name}", "InvalidAction")
    try:
        request = QueryParser(model.operation_model(name)).parse({"values": flat})
    except ValueError as error:
        raise ServiceError(f"A number cannot be read: {str(error)[:150]}") from None
    try:
        check(service, name, request)
    except Invalid as error:
        raise ServiceError(error.message) from None
    return name, request


# ------------------------------------------------------------------------------------------- json


def parse_json(body: bytes, service: str, operation: str) -> dict[str, Any]:
    """Read a JSON request and hold it against the service's model (members, types, enums)."""
    request = parse_object(body)
    check(service, operation, request)
    return request


def parse_object(body: bytes) -> dict[str, Any]:
    """Read the body of a JSON request; an empty one states nothing."""
    try:
        request = read_json(body or b"{}")
    except (ValueError, RecursionError):
        raise ServiceError("The request is no JSON document", UNREADABLE) from None
    if not isinstance(request, dict):
        raise ServiceError("The request is no JSON object", UNREADABLE)
    return request


def check(service: str, operation: str, request: dict[str, Any]) -> None:
    """Hold a request against the service's model: members, types, enums, lengths."""
    shape = service_model(service).operation_model(operation).input_shape
    problems: list[str] = []
    if shape is not None:
        _check(shape, request, "", problems)
    if problems:
        count = len(problems)
        noun = "error" if count == 1 else "errors"
        raise Invalid(f"{count} validation {noun} detected: " + "; ".join(problems))


UNREADABLE = "SerializationException"
_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
    "string": (str,),
    "blob": (str, bytes),
    "boolean": (bool,),
    "integer": (int, float),
    "long": (int, float),
    "float": (int, float),
    "double": (int, float),
    "timestamp": (int, float, str, datetime),  # read already by moto
}

_LONG = 2.0**63


def read_json(text: str | bytes) -> Any:
    """Read a document whose numbers are numbers: Python's reader takes NaN and Infinity too."""
    return json.loads(text, parse_constant=_unreadable, parse_float=_finite)


def _unreadable(text: str) -> float:
    raise ValueError(f"{text} is no number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _unreadable(text)


def _fits(value: object, kind: str) -> bool:
    if isinstance(value, bool):  # to Python a number
        return kind == "boolean"
    return isinstance(value, _JSON_TYPES[kind])


def _check(shape: Shape, value: Any, path: str, problems: list[str]) -> None:
    """Collect what AWS's own front end would refuse: it words the refusals like this."""
    kind = shape.type_name
    where = path or "request"
    if not _fits(value, kind):
        raise ServiceError(
            f"{where} is {type(value).__name__} where {kind} is expected", UNREADABLE
        )
    if kind == "structure":
        members = shape.members
        for name in getattr(shape, "required_members", []):
            if value.get(name) is None:
                problems.append(
                    f"Value null at '{_join(path, name)}' failed to satisfy constraint: "
                    "Member must not be null"
                )
        for name, item in value.items():
            if name not in members:
                problems.append(f"Unknown parameter '{name}' at '{where}'")
            elif item is not None:
                _check(members[name], item, _join(path, name), problems)
        for problem, code in problems_of_shape(shape.name, value, where):
            if code:
                raise ServiceError(problem, code)
            problems.append(problem)
    elif kind == "list":
        _check_size(len(value), shape, where, value, problems)
        for position, item in enumerate(value, start=1):
            _check(shape.member, item, f"{path}.{position}.member", problems)
    elif kind == "map":
        _check_size(len(value), shape, where, value, problems)
        for key, item in value.items():
            _check(shape.key, key, where, problems)
            _check(shape.value, item, f"{path}.{key}", problems)
    elif kind == "string":
        _check_text(shape, value, where, problems)
    elif kind in ("integer", "long", "float", "double"):
        if not abs(value) < (_LONG if kind in ("integer", "long") else sys.float_info.max):
            raise ServiceError(f"{where} is larger than any number here", UNREADABLE)
        _check_size(value, shape, where, value, problems, "have value")


def _check_text(shape: Shape, value: str, where: str, problems: list[str]) -> None:
    """Collect what is wrong with a text, which may be a document."""
    enum = getattr(shape, "enum", None)
    if enum and value not in (*enum, *_NOT_IN_ENUMS.get(shape.name, ())):
        problems.append(
            f"Value '{value}' at '{where}' failed to satisfy constraint: "
            f"Member must satisfy enum value set: [{', '.join(shape.enum)}]"
        )
    if len(value) <= _LONGEST_MATCHED and not _matches(shape.metadata.get("pattern", ""), value):
        problems.append(
            f"Value '{value}' at '{where}' failed to satisfy constraint: Member must satisfy "
            f"regular expression pattern: {shape.metadata['pattern']}"
        )
    _check_size(len(value), shape, where, value, problems)
    for problem, code in problems_of_document(shape.name, value, where):
        if code:
            raise ServiceError(problem, code)
        problems.append(problem)


_NOT_IN_ENUMS = {"BucketCannedACL": ("log-delivery-write",)}
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html, "Canned ACL\""""
_LONGEST_MATCHED = 4096


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Compile a pattern; None for one that only Java's engine knows, such as with ``\\p{L}``."""
    try:
        return re.compile(pattern, re.ASCII)
    except re.error:
        return None


def _matches(pattern: str, value: str) -> bool:
    compiled = _compiled(pattern) if pattern else None
    return compiled is None or compiled.fullmatch(value) is not None


def _check_size(
    size: float,
    shape: Shape,
    where: str,
    value: Any,
    problems: list[str],
    verb: str = "have length",
) -> None:
    limits = shape.metadata
    for bad, key, words in (
        (size < limits.get("min", size), "min", "greater than or equal to"),
        (size > limits.get("max", size), "max", "less than or equal to"),
    ):
        if bad:
            problems.append(
                f"Value '{value}' at '{where}' failed to satisfy constraint: "
                f"Member must {verb} {words} {limits[key]}"
            )


def _join(path: str, name: str) -> str:
    lower_camel = name[:1].lower() + name[1:]
    return f"{path}.{lower_camel}" if path else lower_camel


# ---------------------------------------------------------------------------------------- answers


_XML = {"cloudfront", "route53", "s3"}


def reads_json(service: str, content_type: str) -> bool:
    """Say whether whoever sends this to a service that has no model here reads errors in JSON."""
    return service not in _XML and "form-urlencoded" not in content_type


def content_type(is_json: bool) -> str:
    return "application/x-amz-json-1.1" if is_json else "text/xml"


def write(service: str, operation: str, result: dict[str, Any], is_json: bool) -> bytes:
    """Write what the operation's output shape has, and nothing else."""
    model = service_model(service).operation_model(operation)
    serializer: Any = JSONSerializer if is_json else QuerySerializer
    context = SerializationContext(str(uuid.uuid4()))
    text = str(serializer(model, context).serialize(result)["body"])
    return (text if is_json else _NOT_XML.sub("\ufffd", text)).encode()


_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that no document in XML has, and that clients cannot read."""


def write_error(error: ServiceError, is_json: bool) -> bytes:
    if is_json:
        return json.dumps({"__type": error.code, "message": error.message}).encode()
    return error_xml("query", error.code, _NOT_XML.sub("\ufffd", error.message))
