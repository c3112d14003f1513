"""Bodies of requests, read as services read them before they look for an operation."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Any

from .permissions.requests import body_of
from .protocols import UNREADABLE, ServiceError, parse_object, queried_operation

MOST_EXPANDED = 16 * 1024**2
"""Of a compressed request, in bytes. CloudWatch takes 1 MB in PutMetricData, the one operation of
AWS's that takes compressed requests."""


def expand(environ: dict[str, Any], service: str) -> None:
    """Put the content of a compressed body in its place; S3 keeps what it is given."""
    if service == "s3" or environ.get("HTTP_CONTENT_ENCODING", "").strip().lower() != "gzip":
        return
    _replace(environ, _expanded(body_of(environ)))
    del environ["HTTP_CONTENT_ENCODING"]


def _expanded(body: bytes) -> bytes:
    content = body
    if len(body) <= MOST_EXPANDED:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
                content = file.read(MOST_EXPANDED + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise ServiceError(f"The request is no whole gzip: {error}", UNREADABLE) from None
    if len(content) > MOST_EXPANDED:
        words = f"The request is larger than {MOST_EXPANDED:,} bytes"
        raise ServiceError(words, "RequestEntityTooLarge", 413)
    return content


def checked(environ: dict[str, Any], service: str) -> bytes:
    """Give the body of a request that moto answers, where it is one that the service reads."""
    body = body_of(environ)
    if service == "ec2" and not queried_operation(body, environ.get("QUERY_STRING", "")):
        raise ServiceError("The request names no action", "MissingAction")
    if "HTTP_X_AMZ_TARGET" in environ and "cbor" not in environ.get("CONTENT_TYPE", ""):
        parse_object(body)
        _replace(environ, body or b"{}")
    return body


def is_text(body: bytes) -> bool:
    """Say whether a body is UTF-8."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _replace(environ: dict[str, Any], body: bytes) -> None:
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
