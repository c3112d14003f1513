"""Control of the runtime over HTTP, for the process that started the local AWS.

Not part of AWS: `GET /_local/runtime/url?zone=...`, `POST /_local/runtime/flush`,
`POST /_local/runtime/advance?seconds=...`, `POST /_local/runtime/speed?factor=...`,
`GET /_local/runtime/time`, `POST /_local/runtime/model-servers` with a document of them.
"""

from __future__ import annotations

import json
import urllib.parse

from ..model_servers.specifications import from_document
from .service import Runtime

__all__ = ["PREFIX", "control"]

PREFIX = "/_local/runtime/"


def control(
    runtime: Runtime, path: str, query_string: str, body: bytes = b""
) -> tuple[int, bytes]:
    """Answer a request; gives the HTTP status and a JSON document."""
    query = dict(urllib.parse.parse_qsl(query_string))
    answer: dict[str, object] = {}
    try:
        match path.removeprefix(PREFIX):
            case "url":
                answer["url"] = runtime.url(query.get("zone") or None)
            case "flush":
                runtime.flush()
            case "advance":
                answer["time"] = runtime.advance(float(query["seconds"]))
            case "speed":
                runtime.set_speed(float(query["factor"]))
            case "model-servers":
                documents = json.loads(body)
                runtime.set_model_servers({n: from_document(d) for n, d in documents.items()})
            case "time":
                answer["time"] = runtime.clock.now()
            case _:
                return 404, json.dumps({"error": f"nothing at {path}"}).encode()
    except (KeyError, ValueError) as error:
        return 400, json.dumps({"error": str(error)}).encode()
    return 200, json.dumps(answer).encode()
