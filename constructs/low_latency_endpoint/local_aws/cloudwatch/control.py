"""Control of the evaluation over HTTP, for tests in other processes.

Not part of AWS: `POST /_local/cloudwatch/evaluate?at=...&since=...`, `POST
/_local/cloudwatch/background?on=true`, `GET /_local/cloudwatch/actions`.
"""

from __future__ import annotations

import json
import urllib.parse
from datetime import UTC, datetime, timedelta
from typing import Any

from . import evaluation
from .metric_store import reason_data
from .state import all_states

PREFIX = "/_local/cloudwatch/"


def control(path: str, query_string: str) -> tuple[int, bytes]:
    """Answer a request; gives the HTTP status and a JSON document."""
    query = dict(urllib.parse.parse_qsl(query_string))
    try:
        match path.removeprefix(PREFIX):
            case "evaluate":
                step = timedelta(seconds=float(query.get("step", 60)))
                found = evaluation.evaluate(
                    _moment(query.get("at")), since=_moment(query.get("since")), step=step,
                    region=query.get("region"),
                )
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
    except ValueError as error:
        return 400, _json(error=str(error))
    return 404, _json(error=f"nothing at {path}")


def _moment(text: str | None) -> datetime | None:
    """Read a time: seconds since 1970, or ISO 8601 (UTC when it has no zone)."""
    if not text:
        return None
    try:
        return datetime.fromtimestamp(float(text), UTC)
    except ValueError:
        found = datetime.fromisoformat(text.replace("Z", "+00:00").replace(" ", "+"))
        return found if found.tzinfo else found.replace(tzinfo=UTC)


def _json(**fields: Any) -> bytes:
    return json.dumps(json.loads(reason_data(**fields))).encode()
