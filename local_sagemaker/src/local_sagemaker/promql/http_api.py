"""Prometheus's HTTP API as CloudWatch has it: `query`, `query_range`, the values of a label.

Sources: CloudWatch user guide, "QueryMetrics", "GetLabels" and "PromQL limits and restrictions";
Prometheus documentation, "HTTP API", for the answers.
"""

from __future__ import annotations

import json
import math
import time
import urllib.parse
from collections.abc import Mapping
from typing import Any

from .queries import Query, QueryError, parse, selector
from .series import LONGEST_RANGE, SeriesStore

PATH = "/api/v1/"
SERVICE = "monitoring"  # what a signature names: boto3's cloudwatch is signed for the same

_MOST_STEPS = 11_000  # points of a series. Source: Prometheus's own limit; CloudWatch says none.
_LONGEST = 10.0
"""Seconds of work, after which other callers have their turn. Ours: Prometheus gives two minutes."""


class _Refusal(Exception):
    """What Prometheus's error document says."""

    def __init__(self, message: str, kind: str = "bad_data", status: int = 400) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status


Request = Mapping[str, list[str]]


def answer(
    store: SeriesStore, method: str, path: str, query: str, body: bytes, now: float
) -> tuple[int, bytes]:
    """Answer a request; gives the HTTP status and a JSON document."""
    try:
        text = query if method == "GET" else "&".join(filter(None, (query, body.decode())))
        request = urllib.parse.parse_qs(text, keep_blank_values=True)
        match method, path.split("/"):
            case (("GET" | "POST"), ["query"]):
                data: Any = _instant(store, request, now)
            case (("GET" | "POST"), ["query_range"]):
                data = _over_range(store, request)
            case "GET", ["label", label, "values"]:
                data = _label_values(store, urllib.parse.unquote(label), request)
            case _:
                raise _Refusal(f"{method} {PATH}{path} is not known", "not_found", 404)
        return 200, json.dumps({"status": "success", "data": data}).encode()
    except (QueryError, UnicodeDecodeError) as error:
        refusal = _Refusal(str(error))
    except _Refusal as error:
        refusal = error
    document = {"status": "error", "errorType": refusal.kind, "error": str(refusal)}
    return refusal.status, json.dumps(document).encode()


def _instant(store: SeriesStore, request: Request, now: float) -> dict[str, Any]:
    query, at = parse(_one(request, "query")), _moment(request, "time", now)
    _check_range(query.reach)
    found = query.evaluate(store, at)
    rows = [
        {"metric": _labels(query, key), "value": [at, _written(value)]}
        for key, value in found.items()
    ]
    return {"resultType": "vector", "result": rows}


def _over_range(store: SeriesStore, request: Request) -> dict[str, Any]:
    query = parse(_one(request, "query"))
    start, end, step = (_moment(request, name) for name in ("start", "end", "step"))
    if end < start:
        raise _Refusal("end timestamp must not be before start time")
    if not step:
        raise _Refusal("zero or negative query resolution step widths are not accepted")
    if (end - start) / step > _MOST_STEPS:
        raise _Refusal(f"exceeded maximum resolution of {_MOST_STEPS:,} points per timeseries")
    _check_range(end - start + query.reach)
    rows: dict[str, list[Any]] = {}
    until = time.monotonic() + _LONGEST
    for place in range(int((end - start) / step + 1e-9) + 1):
        if time.monotonic() > until:
            raise _Refusal("query timed out in expression evaluation", "timeout", 503)
        at = start + place * step
        for key, value in query.evaluate(store, at).items():
            rows.setdefault(key, []).append([at, _written(value)])
    result = [{"metric": _labels(query, key), "values": values} for key, values in rows.items()]
    return {"resultType": "matrix", "result": result}


def _labels(query: Query, key: str) -> dict[str, str]:
    return {query.by: key} if key else {}


def _check_range(seconds: float) -> None:
    if seconds > LONGEST_RANGE:
        raise _Refusal(
            "a query can span 7 days, range parameters and lookback included", "execution", 422
        )


def _label_values(store: SeriesStore, name: str, request: Request) -> list[str]:
    """Give a label's values among the series of a selector, or all, with data in a range of time."""
    start, end = _moment(request, "start", 0.0), _moment(request, "end", math.inf)
    metric, wanted = selector(_one(request, "match[]")) if "match[]" in request else ("", ())
    found = {
        each.labels[name]
        for each in store.named(metric)
        if name in each.labels
        and all(each.labels.get(label) == value for label, value in wanted)
        and any(start <= point.time <= end for point in each.points)
    }
    return sorted(found)


def _written(value: float) -> str:
    special = {math.inf: "+Inf", -math.inf: "-Inf"}
    return "NaN" if math.isnan(value) else special.get(value, repr(value).removesuffix(".0"))


def _one(request: Request, name: str) -> str:
    found = request.get(name)
    if not found or not found[-1]:
        raise _Refusal(f'invalid parameter "{name}": it is required')
    return found[-1]


def _moment(request: Request, name: str, default: float | None = None) -> float:
    """Read seconds, of a length or since 1970."""
    if name not in request and default is not None:
        return default
    text = _one(request, name)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < 1e11:  # NaN too
        raise _Refusal(f'invalid parameter "{name}": cannot parse "{text}"')
    return seconds
