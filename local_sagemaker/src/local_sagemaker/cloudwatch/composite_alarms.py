"""Judging composite alarms, and holding back what they would do.

Source: CloudWatch user guide, "Suppressing composite alarm actions", whose examples 1 to 6
tests/deploy holds.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from graphlib import CycleError, TopologicalSorter

from .metric_store import reason_data
from .state import AlarmRecord, CloudWatchState
from .transitions import act, change_state

# The rule of a composite alarm: read, and answered by the states of other alarms.
#
# Source: API reference, PutCompositeAlarm; CloudWatch user guide, "Create a composite alarm".


STATES = ("ALARM", "OK", "INSUFFICIENT_DATA")
MAX_CHILDREN = 100
MAX_ELEMENTS = 500
_TOKEN = re.compile(r'\s*([()]|"[^"]*"|[^\s()"]+)')


class RuleError(ValueError):
    """A rule that cannot be read."""


@dataclass(frozen=True)
class Rule:
    """A rule that has been read.

    Attributes
    ----------
    children : tuple of str
        The alarms it names, by name or ARN as written, each once.
    holds : callable
        Whether it is true, given the state of an alarm by name or ARN.
    """

    children: tuple[str, ...]
    holds: Callable[[Callable[[str], str]], bool]


Test = Callable[[Callable[[str], str]], bool]


def parse_rule(text: str) -> Rule:
    """Read a rule.

    Raises
    ------
    RuleError
        When it cannot be read, or is larger than AWS allows.

    Examples
    --------
    >>> rule = parse_rule('ALARM("slow") AND NOT (OK(deploying) OR FALSE)')
    >>> rule.children
    ('slow', 'deploying')
    >>> rule.holds({"slow": "ALARM", "deploying": "ALARM"}.get)
    True
    """
    parser = _Parser(text)
    test = parser.disjunction()
    if parser.peek():
        raise RuleError(f"Unexpected '{parser.peek()}' in the alarm rule")
    children = tuple(dict.fromkeys(parser.children))
    if len(children) > MAX_CHILDREN:
        raise RuleError(f"An alarm rule names {MAX_CHILDREN} alarms at most")
    if parser.elements > MAX_ELEMENTS:
        raise RuleError(f"An alarm rule has {MAX_ELEMENTS} elements at most")
    return Rule(children, test)


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        self.children: list[str] = []
        self.elements = 0
        place, stripped = 0, text.rstrip()
        while place < len(stripped):
            found = _TOKEN.match(stripped, place)
            if not found:
                raise RuleError(f"Cannot read '{stripped[place:]}' in the alarm rule")
            self.tokens.append(found[1])
            place = found.end()
        self.tokens.reverse()

    def peek(self) -> str:
        return self.tokens[-1] if self.tokens else ""

    def take(self, wanted: str = "") -> str:
        if not self.tokens or (wanted and self.tokens[-1] != wanted):
            raise RuleError(f"Expected {wanted or 'more'} in the alarm rule")
        return self.tokens.pop()

    def disjunction(self) -> Test:
        tests = [self.conjunction()]
        while self.peek() == "OR":
            self.take()
            tests.append(self.conjunction())
        return lambda state_of: any(test(state_of) for test in tests)

    def conjunction(self) -> Test:
        tests = [self.negation()]
        while self.peek() == "AND":
            self.take()
            tests.append(self.negation())
        return lambda state_of: all(test(state_of) for test in tests)

    def negation(self) -> Test:
        if self.peek() == "NOT":
            self.take()
            inner = self.negation()
            return lambda state_of: not inner(state_of)
        return self.element()

    def element(self) -> Test:
        token = self.take()
        self.elements += 1
        if token == "(":
            inner = self.disjunction()
            self.take(")")
            return inner
        if token in ("TRUE", "FALSE"):
            return lambda state_of: token == "TRUE"
        if token not in STATES:
            raise RuleError(f"Unexpected '{token}' in the alarm rule")
        self.take("(")
        # A name without quotes may have spaces in it.
        words = [self.take()]
        while self.peek() != ")":
            words.append(self.take())
        self.take(")")
        name = " ".join(words).strip('"')
        self.children.append(name)
        return lambda state_of: state_of(name) == token


logger = logging.getLogger(__name__)


def settle(state: CloudWatchState, at: datetime) -> None:
    """Judge all composite alarms, each after the alarms that it depends on."""
    for alarm in _in_order(state):
        _judge(state, alarm, at)


def _in_order(state: CloudWatchState) -> list[AlarmRecord]:
    """Give the composites, children and suppressors first; none of a cycle, as AWS."""
    composites = {alarm.name: alarm for alarm in state.alarms.values() if alarm.composite}
    needs: dict[str, set[str]] = {}
    for name, alarm in composites.items():
        used = [*parse_rule(alarm.settings["AlarmRule"]).children]
        if alarm.settings.get("ActionsSuppressor"):
            used.append(alarm.settings["ActionsSuppressor"])
        found = (state.find(entry) for entry in used)
        needs[name] = {child.name for child in found if child is not None and child.composite}
    while True:
        try:
            return [composites[name] for name in TopologicalSorter(needs).static_order()]
        except CycleError as error:
            cycle = set(error.args[1])
            logger.warning("composite alarms not evaluated, they form a cycle: %s", sorted(cycle))
            needs = {name: used - cycle for name, used in needs.items() if name not in cycle}


def _judge(state: CloudWatchState, alarm: AlarmRecord, at: datetime) -> None:
    rule = parse_rule(alarm.settings["AlarmRule"])

    def state_of(name_or_arn: str) -> str:
        child = state.find(name_or_arn)
        return child.state if child else "INSUFFICIENT_DATA"

    new = "ALARM" if rule.holds(state_of) else "OK"
    children = [child for name in rule.children if (child := state.find(name)) is not None]
    latest = max(children, key=lambda c: c.outcome["StateTransitionedTimestamp"], default=None)
    if latest is None:
        reason = "The alarm rule names no alarm that exists"
    else:
        moment = latest.outcome["StateTransitionedTimestamp"]
        reason = (
            f"{latest.alarm_arn} transitioned to {latest.state} at "
            f"{moment:%A %d %B, %Y %H:%M:%S} UTC"
        )
    data = reason_data(
        triggeringAlarms=[
            {
                "arn": child.alarm_arn,
                "state": {
                    "value": child.state,
                    "timestamp": child.outcome["StateTransitionedTimestamp"],
                },
            }
            for child in children
            if child.state == "ALARM"
        ]
    )
    change = change_state(state, alarm, new, reason, data, at)
    if not alarm.settings.get("ActionsSuppressor"):
        if change:
            act(state, alarm, change, at)
        return
    _suppress(state, alarm, at, change)


def _suppress(
    state: CloudWatchState, alarm: AlarmRecord, at: datetime, change: dict[str, object] | None
) -> None:
    """Hold back an action while the suppressor is on, or for a period around that."""
    suppressor = state.find(alarm.settings["ActionsSuppressor"])
    suppressor_on = suppressor is not None and suppressor.state == "ALARM"
    if change:
        # Every change starts a new wait; an extension under way is given up for it.
        alarm.pending, alarm.waiting_since, alarm.suppressor_left = change, at, None
    if suppressor_on:
        alarm.waiting_since = alarm.suppressor_left = None
    elif alarm.suppressor_was_on and not change:
        alarm.suppressor_left = at
    alarm.suppressor_was_on = suppressor_on
    by = "Alarm" if suppressor_on else _period_under_way(alarm, at)
    if by:
        alarm.outcome["ActionsSuppressedBy"] = by
        alarm.outcome["ActionsSuppressedReason"] = f"Actions suppressed by {by}"
        return
    alarm.outcome.pop("ActionsSuppressedBy", None)
    alarm.outcome.pop("ActionsSuppressedReason", None)
    alarm.waiting_since = alarm.suppressor_left = None
    if alarm.pending:
        held, alarm.pending = alarm.pending, None
        act(state, alarm, held, at)


def _period_under_way(alarm: AlarmRecord, at: datetime) -> str | None:
    for name, since in (
        ("WaitPeriod", alarm.waiting_since),
        ("ExtensionPeriod", alarm.suppressor_left),
    ):
        length = timedelta(seconds=int(alarm.settings[f"ActionsSuppressor{name}"]))
        if since is not None and at < since + length:
            return name
    return None
