"""The rule of a composite alarm: read, and answered by the states of other alarms.

Source: API reference, PutCompositeAlarm; CloudWatch user guide, "Create a composite alarm".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

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
