"""Control of the evaluation over HTTP, for tests in other processes.

Not part of AWS, and only for whoever has the token (see `admission`):
`POST /_local/cloudwatch/evaluate?at=...&since=...`, `POST /_local/cloudwatch/background?on=true`,
`GET /_local/cloudwatch/actions`.
"""

from __future__ import annotations

import contextlib
import json
import urllib.parse
from datetime import UTC, datetime, timedelta
from typing import Any

from . import evaluation
from .metric_store import reason_data
from .state import all_states, now

PREFIX = "/_local/cloudwatch/"
_MOST_STEPS = 10_080
# The ends of what dates and the arithmetic on metrics' periods reach.
_FIRST_YEAR, _LAST_YEAR = 1970, 9998
_END = datetime(_LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()


def control(path: str, query_string: str) -> tuple[int, bytes]:
    """Answer a request; gives the HTTP status and a JSON document."""
    try:
        query = dict(urllib.parse.parse_qsl(query_string))
        match path.removeprefix(PREFIX):
            case "evaluate":
                at, since = _moment(query.get("at")), _moment(query.get("since"))
                step = timedelta(seconds=float(query.get("step", 60)))
                _check_steps(at or now(), since, step)
                found = evaluation.evaluate(at, since=since, step=step, region=query.get("region"))
                return 200, _json(alarms=found)
            case "background":
                if query.get("on", "true").lower() == "true":
                    evaluation.BACKGROUND.start()
                else:
                    evaluation.BACKGROUND.stop()
                return 200, _json(running=evaluation.BACKGROUND.running)
            case "actions":
                return 200, _json(
                    actions=[entry for state in all_states() for entry in state.published]
                )
    except (ValueError, OverflowError) as error:
        return 400, _json(error=str(error))
    return 404, _json(error=f"nothing at {path}")


def _check_steps(at: datetime, since: datetime | None, step: timedelta) -> None:
    """Refuse what would take for ever."""
    if step <= timedelta(0):
        raise ValueError(f"step must be above 0 s: {step.total_seconds()}")
    if since is not None and (at - since) / step > _MOST_STEPS:
        raise ValueError(f"at most {_MOST_STEPS} evaluations at a time, which are a week of "
                         f"minutes: from {since} to {at} there are more")


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
