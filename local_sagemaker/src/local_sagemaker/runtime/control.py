"""Control of the runtime over HTTP, for the process that started the local AWS.

Not part of AWS, and only for whoever has the token (see `admission`):
`GET /_local/runtime/url?zone=...`, `POST /_local/runtime/flush`,
`POST /_local/runtime/advance?seconds=...`, `POST /_local/runtime/speed?factor=...`,
`GET /_local/runtime/time`, `POST /_local/runtime/model-servers` with a document of them; with
`?keep=true` those that are there stay.
"""

from __future__ import annotations

import json
import math
import urllib.parse
from typing import Any

from ..model_servers.specifications import from_document
from .service import Runtime

__all__ = ["PREFIX", "control"]

PREFIX = "/_local/runtime/"


def control(
    runtime: Runtime, path: str, query_string: str, body: bytes = b""
) -> tuple[int, bytes]:
    """Answer a request; gives the HTTP status and a JSON document."""
    answer: dict[str, object] = {}
    try:
        query = dict(urllib.parse.parse_qsl(query_string))
        match path.removeprefix(PREFIX):
            case "url":
                answer["url"] = runtime.url(query.get("zone") or None)
            case "flush":
                runtime.flush()
            case "advance":
                answer["time"] = runtime.advance(_number(query, "seconds"))
            case "speed":
                runtime.set_speed(_number(query, "factor"))
            case "model-servers":
                documents = _document(body)
                servers = {n: from_document(d) for n, d in documents.items()}
                keep = query.get("keep") == "true"
                (runtime.add_model_servers if keep else runtime.set_model_servers)(servers)
            case "time":
                answer["time"] = runtime.clock.now()
            case _:
                return 404, json.dumps({"error": f"nothing at {path}"}).encode()
    except ValueError as error:
        return 400, json.dumps({"error": str(error)}).encode()
    return 200, json.dumps(answer).encode()


def _number(query: dict[str, str], name: str) -> float:
    try:
        return float(query[name])
    except (KeyError, ValueError):
        raise ValueError(f"{name} must be a number: {query.get(name)}") from None


def _document(body: bytes) -> dict[str, Any]:
    """Read an object whose numbers are numbers: Python's reader takes NaN and Infinity too."""
    try:
        document = json.loads(body, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise ValueError("the document is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("model servers are an object, from image to server")
    return document


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)
