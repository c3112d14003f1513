"""Lists by the page: AWS gives so many items in one answer, and a token for the rest.

How many is data, with its source (`pages.csv`); what a page's list and its tokens are called is in
botocore's paginators.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import botocore.loaders

from .protocols import ServiceError, service_model

_loader = botocore.loaders.create_loader()


def page(
    service: str, operation: str, request: Mapping[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    """Give the page of an answer that is asked for; an answer that is no list as it is."""
    most = most_items().get((service, operation))
    if most is None:
        return answer
    names = _paginators(service)[operation]
    first = _first(service, operation, request.get(names["input_token"]))
    last = first + int(request.get(names.get("limit_key", "")) or most)
    items = answer.get(names["result_key"])
    if not items:
        return answer
    more: dict[str, Any] = {names["output_token"]: str(last)} if last < len(items) else {}
    if more and "more_results" in names:
        more[names["more_results"]] = True
    return answer | {names["result_key"]: items[first:last]} | more


@functools.cache
def most_items() -> dict[tuple[str, str], int]:
    """Give the items of a page for which no other number is asked, by service and operation."""
    text = Path(__file__).with_name("pages.csv").read_text("utf-8")
    rows = csv.DictReader(text.splitlines())
    return {(row["service"], row["operation"]): int(row["most"]) for row in rows}


@functools.cache
def _paginators(service: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = _loader.load_service_model(service, "paginators-1")
    return found["pagination"]


def _first(service: str, operation: str, token: str | None) -> int:
    if token is None:
        return 0
    if not (token.isascii() and token.isdecimal() and len(token) < 10):
        errors = service_model(service).operation_model(operation).error_shapes
        named = [error.name for error in errors if "NextToken" in error.name]
        is_query = service_model(service).metadata["protocol"] == "query"
        other = "ValidationError" if is_query else "ValidationException"
        raise ServiceError("The NextToken is invalid", next(iter(named), other))
    return int(token)
