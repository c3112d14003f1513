"""Judging composite alarms, and holding back what they would do.

Source: CloudWatch user guide, "Suppressing composite alarm actions", whose examples 1 to 6
tests/deploy holds.
"""

from __future__ import annotations

import ast
import functools
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from graphlib import CycleError, TopologicalSorter
from typing import cast

from .metric_store import reason_data
from .state import AlarmRecord, CloudWatchState, act, change_state

# The rule of a composite alarm: read, and answered by the states of other alarms.
#
# Source: API reference, PutCompositeAlarm; CloudWatch user guide, "Create a composite alarm".


MAX_CHILDREN = 100
MAX_ELEMENTS = 500
_TOKEN = re.compile(
    r'(?P<state>ALARM|OK|INSUFFICIENT_DATA)\s*\(\s*(?P<alarm>"[^"]*"|[^\s()"][^()"]*)\)'
    r"|(?P<word>AND|OR|NOT|TRUE|FALSE)\b|(?P<brace>[()])|(?P<other>\S)"
)
_WORDS = {"AND": "and", "OR": "or", "NOT": "not", "TRUE": "True", "FALSE": "False"}


class RuleError(ValueError):
    """A rule that cannot be read."""


@dataclass(frozen=True)
class AlarmRule:
    children: tuple[str, ...]
    _tests: tuple[tuple[str, str], ...]
    """State and alarm of each function, in the order of the names in the tree."""
    _tree: ast.expr

    def holds(self, state_of: Callable[[str], str | None]) -> bool:
        """Whether it is true, given the state of an alarm by name or ARN."""

        def test(node: ast.expr) -> bool:
            match node:
                case ast.BoolOp(operator, values):
                    return (all if isinstance(operator, ast.And) else any)(map(test, values))
                case ast.UnaryOp(_, operand):
                    return not test(operand)
                case ast.Name(name):
                    state, alarm = self._tests[int(name.strip("_"))]
                    return state_of(alarm) == state
            return bool(cast(ast.Constant, node).value)

        return test(self._tree)


@functools.lru_cache(1024)  # alarms are judged every minute
def parse_rule(text: str) -> AlarmRule:
    """Read a rule, by Python's own parser: AND, OR and NOT bind as they do there.

    Examples
    --------
    >>> rule = parse_rule('ALARM("slow") AND NOT (OK(deploying) OR FALSE)')
    >>> rule.children
    ('slow', 'deploying')
    >>> rule.holds({"slow": "ALARM", "deploying": "ALARM"}.get)
    True
    """
    python: list[str] = []
    tests: list[tuple[str, str]] = []
    for token in _TOKEN.finditer(text):
        if token["other"]:
            raise RuleError(f"Cannot read '{text[token.start() :]}' in the alarm rule")
        if token["state"]:
            python.append(f"_{len(tests)}")
            tests.append((token["state"], token["alarm"].strip().strip('"')))
        else:
            python.append(_WORDS.get(token[0], token[0]))
    children = tuple(dict.fromkeys(alarm for _, alarm in tests))
    if len(children) > MAX_CHILDREN:
        raise RuleError(f"An alarm rule names {MAX_CHILDREN} alarms at most")
    if len(tests) + sum(part in ("(", "True", "False") for part in python) > MAX_ELEMENTS:
        raise RuleError(f"An alarm rule has {MAX_ELEMENTS} elements at most")
    try:
        tree = ast.parse(" ".join(python), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise RuleError(f"The alarm rule is not an expression: {text}") from None
    if any(isinstance(node, (ast.Call, ast.Tuple)) for node in ast.walk(tree)):
        raise RuleError(f"The alarm rule has functions without an operator between: {text}")
    return AlarmRule(children, tuple(tests), tree)


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
    if alarm.settings.get("ActionsSuppressor"):
        _suppress(state, alarm, at, change)
    elif change:
        act(state, alarm, change, at)


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
