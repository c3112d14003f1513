"""Evaluating every alarm: at a moment that a test names, or every minute."""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta
from typing import Any

from . import composite_alarms, metric_alarms, query_alarms
from .alarm_api import check_set_state
from .metric_math import ExpressionError
from .metric_store import as_seconds
from .state import AlarmRecord, CloudWatchState, act, all_states, change_state, now

logger = logging.getLogger(__name__)
MINUTE = timedelta(minutes=1)


def evaluate(
    at: datetime | None = None,
    *,
    since: datetime | None = None,
    step: timedelta = MINUTE,
    region: str | None = None,
) -> int:
    """Evaluate all alarms on the data before a moment."""
    end = at or now()
    moments = [end]
    if since is not None:
        steps = int((end - since) / step)
        moments = [since + step * number for number in range(1, steps + 1)] or [end]
    found = 0
    for state in all_states():
        if region in (None, state.region):
            found += len(state.alarms)
            for moment in moments:
                _evaluate(state, moment)
            if at is not None:
                state.clock = end
    return found


def _evaluate(state: CloudWatchState, at: datetime) -> None:
    with state.lock:
        for alarm in [a for a in state.alarms.values() if not a.composite]:
            if alarm.by_query:
                if query_alarms.is_due(alarm, at):
                    new = query_alarms.judge(state, alarm, at)
                    _move(state, alarm, new, query_alarms.state_reason(new), "{}", at)
                continue
            try:
                outcome = metric_alarms.evaluate(
                    alarm.settings, state.metrics, as_seconds(at), alarm.state
                )
            except ExpressionError as error:
                # Put refuses what is wrong; what shows up only now must not stop the others.
                logger.warning("alarm %s not evaluated: %s", alarm.name, error)
                continue
            if outcome.state is not None:
                _move(state, alarm, outcome.state, outcome.reason, outcome.data, at)
        composite_alarms.settle(state, at)


def _move(
    state: CloudWatchState, alarm: AlarmRecord, new: str, reason: str, data: str, at: datetime
) -> None:
    change = change_state(state, alarm, new, reason, data, at)
    if change:
        act(state, alarm, change, at)


def set_alarm_state(state: CloudWatchState, request: dict[str, Any]) -> None:
    """SetAlarmState: until the next evaluation says otherwise; composites follow at once."""
    with state.lock:
        alarm = check_set_state(state, request)
        at = state.present()
        data = request.get("StateReasonData") or "{}"
        _move(state, alarm, request["StateValue"], request["StateReason"], data, at)
        composite_alarms.settle(state, at)


class Evaluator:
    """Evaluates in the background, as AWS does by itself."""

    def __init__(self, interval: timedelta = MINUTE) -> None:
        self._interval = interval
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        return self._thread is not None

    def start(self) -> None:
        """Start; starting twice is no error."""
        if self._thread is None:
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._stop,), name="alarms", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Stop; stopping twice is no error."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
            self._thread = None

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(self._interval.total_seconds()):
            try:
                evaluate()
            except Exception:
                # One bad minute must not end the evaluation for good.
                logger.exception("evaluating the alarms failed")


BACKGROUND = Evaluator()  # the evaluator of this process; off until it is started
