"""Prometheus's HTTP API as CloudWatch has it: `/api/v1/query`, `query_range`, and discovery.

Sources: CloudWatch user guide, "QueryMetrics", "GetSeries", "GetLabels" and "PromQL limits and
restrictions"; Prometheus documentation, "HTTP API", for the answers.
"""

from __future__ import annotations

import json
import math
import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import promql_parser as grammar

from .evaluation import Result, evaluate, parse, reach, selectors_in
from .histograms import Histogram
from .series import LONGEST_RANGE, NAME, Series, SeriesStore, Value, distinct
from .vectors import Element, QueryError, matchers

PATH = "/api/v1/"
SERVICE = "monitoring"
"""What a signature names: boto3's cloudwatch is signed for the same."""

MOST_SERIES = 500
MOST_LABELS = 10_000
_MOST_STEPS = 11_000
"""Points of a series. Source: Prometheus's own limit; CloudWatch says none."""

_LABEL_VALUES = re.compile(r"label/([^/]+)/values")


class Refusal(Exception):
    """What Prometheus's error document says."""

    def __init__(self, message: str, kind: str = "bad_data", status: int = 400) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status


Request = Mapping[str, list[str]]


def answer(
    store: SeriesStore, method: str, path: str, query: str, body: bytes, now: float
) -> tuple[int, bytes]:
    """Answer a request; gives the HTTP status and a JSON document.

    Parameters
    ----------
    path
        After `/api/v1/`.
    query, body
        The URL's query string, and of a POST the form.
    now
        The present, for requests without a time.
    """
    try:
        values = _LABEL_VALUES.fullmatch(path)
        operation = _OPERATIONS.get(path)
        if method not in ("GET", "POST") or (operation is None and not values):
            raise Refusal(f"{method} {PATH}{path} is not known", "not_found", 404)
        text = query if method == "GET" else "&".join(filter(None, (query, body.decode())))
        request = urllib.parse.parse_qs(text, keep_blank_values=True)
        if values:
            return 200, _json(_label_values(store, urllib.parse.unquote(values[1]), request))
        assert operation is not None
        return 200, _json(operation(store, request, now))
    except (QueryError, UnicodeDecodeError) as error:
        refusal = Refusal(str(error))
    except Refusal as error:
        refusal = error
    document = {"status": "error", "errorType": refusal.kind, "error": str(refusal)}
    return refusal.status, _json(document)


# ----------------------------------------------------------------------------------------- queries


def _instant(store: SeriesStore, request: Request, now: float) -> dict[str, Any]:
    text, at = _one(request, "query"), _moment(request, "time", now)
    _check_range(reach(text))
    found = evaluate(store, text, at)
    if isinstance(found, float):
        return _success("scalar", [at, number(found)])
    if isinstance(found, str):
        return _success("string", [at, found])
    rows = [{"metric": dict(one.labels), **_valued(at, one.value)} for one in found]
    return _limited("vector", rows, request)


def _over_range(store: SeriesStore, request: Request, now: float) -> dict[str, Any]:
    text = _one(request, "query")
    start, end = (_moment(request, name, None) for name in ("start", "end"))
    step = duration(_one(request, "step"))
    if end < start:
        raise Refusal("end timestamp must not be before start time")
    if step <= 0:
        raise Refusal("zero or negative query resolution step widths are not accepted")
    if (end - start) / step > _MOST_STEPS:
        raise Refusal(f"exceeded maximum resolution of {_MOST_STEPS:,} points per timeseries")
    parse(text)
    _check_range(end - start + reach(text))
    rows: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for number_ in range(int((end - start) / step + 1e-9) + 1):
        at = start + number_ * step
        for one in _elements(evaluate(store, text, at)):
            key = tuple(sorted(one.labels.items()))
            row = rows.setdefault(key, {"metric": dict(one.labels)})
            for kind, point in _valued(at, one.value).items():
                row.setdefault(f"{kind}s", []).append(point)
    return _limited("matrix", list(rows.values()), request)


def _elements(found: Result) -> Iterable[Element]:
    if isinstance(found, str):
        raise Refusal("invalid expression type string for range query")
    return [Element({}, found)] if isinstance(found, float) else found


def _check_range(seconds: float) -> None:
    if seconds > LONGEST_RANGE:
        raise Refusal(
            "a query can span 7 days, range parameters and lookback included", "execution", 422
        )


def _limited(kind: str, rows: list[dict[str, Any]], request: Request) -> dict[str, Any]:
    most = _most(request, MOST_SERIES)
    found = _success(kind, rows[:most])
    if len(rows) > most:
        found["warnings"] = [
            f"result truncated to the maximum of {most} series; refine the query or use the limit "
            "parameter"
        ]
    return found


def _most(request: Request, most: int) -> int:
    if "limit" not in request:
        return most
    text = _one(request, "limit")
    found = int(text) if text.isdigit() else 0
    if not 1 <= found <= most:
        raise Refusal(f"limit must be between 1 and {most}: {text}")
    return found


def _success(kind: str, result: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": kind, "result": result}}


def _valued(at: float, value: Value) -> dict[str, Any]:
    if not isinstance(value, Histogram):
        return {"value": [at, number(value)]}
    buckets = [
        # 0: open on the left; 3: closed on both sides, as the bucket of zeros is.
        [0 if span.high > 0 else 3, number(span.low), number(span.high), number(span.inside)]
        for span in value.spans()
    ]
    told = {"count": number(value.count), "sum": number(value.sum), "buckets": buckets}
    return {"histogram": [at, told]}


def number(value: float) -> str:
    """Write a number as Prometheus does.

    Examples
    --------
    >>> number(42.0), number(0.25), number(1e-7), number(float("inf")), number(float("nan"))
    ('42', '0.25', '0.0000001', '+Inf', 'NaN')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = format(Decimal(repr(float(value))), "f")
    return text.removesuffix(".0")


# --------------------------------------------------------------------------------------- discovery


def _series(store: SeriesStore, request: Request, now: float) -> dict[str, Any]:
    for name in ("match[]", "start", "end"):
        _one(request, name)
    return _discovered(distinct(_selected(store, request, needs_name=True)), request)


def _labels(store: SeriesStore, request: Request, now: float) -> dict[str, Any]:
    names = {name for one in _selected(store, request) for name in one.labels}
    return _discovered(sorted(names), request)


def _label_values(store: SeriesStore, name: str, request: Request) -> dict[str, Any]:
    found = {one.labels[name] for one in _selected(store, request) if name in one.labels}
    return _discovered(sorted(found), request)


def _discovered(found: list[Any], request: Request) -> dict[str, Any]:
    most = _most(request, MOST_LABELS)
    answer: dict[str, Any] = {"status": "success", "data": found[:most]}
    if len(found) > most:
        answer["warnings"] = [f"result truncated to the maximum of {most}"]
    return answer


def _selected(
    store: SeriesStore, request: Request, *, needs_name: bool = False
) -> Iterable[Series]:
    """Give the series of any of the selectors, of all without one, in the range of time."""
    start, end = (
        _moment(request, name, default) for name, default in (("start", 0.0), ("end", math.inf))
    )
    wanted = []
    for text in request.get("match[]", ()):
        selectors = selectors_in(text)
        if len(selectors) != 1:
            raise Refusal(f"match[] takes a series selector, not {text}")
        wanted.append(matchers(selectors[0], needs_name=needs_name))
    for one in store.all():
        if not any(start <= point.time <= end for point in one.points):
            continue
        if not wanted or any(
            (not names or one.labels[NAME] in names) and all(test(one.labels) for test in tests)
            for names, tests in wanted
        ):
            yield one


_OPERATIONS: dict[str, Callable[[SeriesStore, Request, float], dict[str, Any]]] = {
    "query": _instant,
    "query_range": _over_range,
    "series": _series,
    "labels": _labels,
}


# -------------------------------------------------------------------------------------- parameters


def _one(request: Request, name: str) -> str:
    found = request.get(name)
    if not found or not found[-1]:
        raise Refusal(f'invalid parameter "{name}": it is required')
    return found[-1]


def _moment(request: Request, name: str, default: float | None) -> float:
    if name not in request and default is not None:
        return default
    text = _one(request, name)
    try:
        seconds = float(text)
    except ValueError:
        try:
            found = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            raise Refusal(f'invalid parameter "{name}": cannot parse "{text}"') from None
        seconds = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    if not 0 <= seconds < 1e11:  # NaN too
        raise Refusal(f'invalid parameter "{name}": cannot parse "{text}"')
    return seconds


def duration(text: str) -> float:
    """Read a duration, or seconds.

    Examples
    --------
    >>> duration("1m30s"), duration("15")
    (90.0, 15.0)
    """
    try:
        found = float(text)
    except ValueError:
        try:
            found = grammar.parse_duration(text).total_seconds()
        except ValueError:
            raise Refusal(f'invalid parameter "step": cannot parse "{text}"') from None
    if not math.isfinite(found):
        raise Refusal(f'invalid parameter "step": cannot parse "{text}"')
    return found


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document).encode()
