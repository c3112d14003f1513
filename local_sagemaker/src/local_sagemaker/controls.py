"""Control over HTTP of what is no part of AWS: the runtime, its clock, the judging of alarms.

For the process that started the local AWS, and for tests in others; only for whoever has the token
(see `admission`). `POST` or `GET`, with queries:

- `/_local/runtime/url?zone=...`, `/_local/runtime/time`, `/_local/runtime/flush`,
  `/_local/runtime/advance?seconds=...`, `/_local/runtime/speed?factor=...`;
- `/_local/runtime/model-servers` with a document of them; with `?keep=true` those that are there
  stay. Gives the endpoints that `changed` at once, and that `kept` what runs;
- `/_local/network/path?zone=...&delay_ms=...&lost=true`, `/_local/network/names?order=...`,
  `/_local/events/run-schedules`;
- `/_local/cloudwatch/evaluate?at=...&since=...&step=...`, `/_local/cloudwatch/actions`,
  `/_local/cloudwatch/background?on=true`.
"""

from __future__ import annotations

import contextlib
import json
import urllib.parse
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from .cloudwatch.evaluation import BACKGROUND, evaluate
from .cloudwatch.metric_store import reason_data
from .cloudwatch.state import all_states, now
from .model_servers.specifications import from_document
from .protocols import read_json
from .runtime.service import Runtime
from .schedules import run_schedules

_MOST_STEPS = 10_080
# The ends of what dates and the arithmetic on metrics' periods reach.
_FIRST_YEAR, _LAST_YEAR = 1970, 9998
_END = datetime(_LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()

Query = Mapping[str, str]


def control(runtime: Runtime, path: str, query_string: str, body: bytes = b"") -> tuple[int, bytes]:
    """Answer a request; gives the HTTP status and a JSON document."""
    answer = _CONTROLS.get(path.removeprefix("/_local/"))
    if answer is None:
        return 404, _json(error=f"nothing at {path}")
    try:
        query = dict(urllib.parse.parse_qsl(query_string))
        return 200, _json(**(answer(runtime, query, body) or {}))
    except (ValueError, OverflowError) as error:
        return 400, _json(error=str(error))


def _model_servers(runtime: Runtime, query: Query, body: bytes) -> dict[str, Any]:
    try:
        documents = read_json(body)
    except RecursionError:
        raise ValueError("the document is nested too deeply") from None
    if not isinstance(documents, dict):
        raise ValueError("model servers are an object, from image to server")
    servers = {name: from_document(document) for name, document in documents.items()}
    keep = query.get("keep") == "true"
    return (runtime.add_model_servers if keep else runtime.set_model_servers)(servers)


def _evaluate(runtime: Runtime, query: Query, body: bytes) -> dict[str, Any]:
    at, since = _moment(query.get("at")), _moment(query.get("since"))
    step = timedelta(seconds=float(query.get("step", 60)))
    _check_steps(at or now(), since, step)
    return {"alarms": evaluate(at, since=since, step=step, region=query.get("region"))}


def _background(runtime: Runtime, query: Query, body: bytes) -> dict[str, Any]:
    if query.get("on", "true").lower() == "true":
        BACKGROUND.start()
    else:
        BACKGROUND.stop()
    return {"running": BACKGROUND.running}


def _path(runtime: Runtime, query: Query, body: bytes) -> None:
    lost = query.get("lost", "").lower() == "true"
    delay = _number({"delay_ms": "0", **query}, "delay_ms")
    runtime.paths = runtime.paths.with_path(query.get("zone", ""), delay, lost)


def _names(runtime: Runtime, query: Query, body: bytes) -> None:
    runtime.paths = runtime.paths.with_order(query.get("order", ""))


_CONTROLS: dict[str, Callable[[Runtime, Query, bytes], dict[str, Any] | None]] = {
    "runtime/url": lambda runtime, query, _: {"url": runtime.url(query.get("zone") or None)},
    "runtime/time": lambda runtime, *_: {"time": runtime.clock.now()},
    "runtime/flush": lambda runtime, *_: runtime.flush(),
    "runtime/advance": lambda runtime, query, _: {
        "time": runtime.advance(_number(query, "seconds"))
    },
    "runtime/speed": lambda runtime, query, _: runtime.clock.set_speed(_number(query, "factor")),
    "runtime/model-servers": _model_servers,
    "network/path": _path,
    "network/names": _names,
    "events/run-schedules": lambda runtime, *_: {"ran": run_schedules(runtime)},
    "cloudwatch/evaluate": _evaluate,
    "cloudwatch/background": _background,
    "cloudwatch/actions": lambda *_: {
        "actions": [entry for state in all_states() for entry in state.published]
    },
}


def _number(query: Query, name: str) -> float:
    try:
        return float(query[name])
    except (KeyError, ValueError):
        raise ValueError(f"{name} must be a number: {query.get(name)}") from None


def _check_steps(at: datetime, since: datetime | None, step: timedelta) -> None:
    """Refuse what would take for ever."""
    if step <= timedelta(0):
        raise ValueError(f"step must be above 0 s: {step.total_seconds()}")
    if since is not None and (at - since) / step > _MOST_STEPS:
        raise ValueError(
            f"at most {_MOST_STEPS} evaluations at a time, which are a week of "
            f"minutes: from {since} to {at} there are more"
        )


def _moment(text: str | None) -> datetime | None:
    """Read a time: seconds since 1970, or ISO 8601 (UTC when it has no zone)."""
    if not text:
        return None
    seconds = None
    with contextlib.suppress(ValueError):
        seconds = float(text)
    if seconds is None:
        found = datetime.fromisoformat(text.replace("Z", "+00:00").replace(" ", "+"))
        found = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    else:
        if not 0 <= seconds < _END:  # NaN too; the platform's own refusals differ
            raise ValueError(f"a moment lies between {_FIRST_YEAR} and {_LAST_YEAR}: {text}")
        found = datetime.fromtimestamp(seconds, UTC)
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise ValueError(f"a moment lies between {_FIRST_YEAR} and {_LAST_YEAR}: {text}")
    return found


def _json(**fields: Any) -> bytes:
    return json.dumps(json.loads(reason_data(**fields))).encode()
