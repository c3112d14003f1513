"""A policy's patterns, variables and conditions.

Source: IAM user guide, "IAM JSON policy elements: Condition operators", "Single-valued vs.
multivalued context keys", "Variables and tags", "Resource".
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

Context = Mapping[str, "str | tuple[str, ...]"]
"""What a request brings, by condition key in lower case; several values are a tuple."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NEVER = re.compile(r"(?!)")


class NotJudged(Exception):
    """A policy or a request has something that this evaluator does not know; the text names it."""


# ------------------------------------------------------------------------------- patterns


@functools.lru_cache(8192)
def _wildcards(text: str, flags: int = 0) -> re.Pattern[str]:
    """Compile `*` and `?`, which stop at nothing."""
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in text)
    return re.compile("".join(parts), flags | re.DOTALL)


def is_like(pattern: str, value: str, *, ignore_case: bool = False) -> bool:
    return bool(_wildcards(pattern, re.IGNORECASE if ignore_case else 0).fullmatch(value))


def _compiled(
    text: str, context: Context, *, wild: bool = True, variables: bool = True
) -> re.Pattern[str]:
    """Compile a value, its variables filled in as letters; a missing one matches nothing."""
    if "${" not in text or not variables:
        return _wildcards(text) if wild else re.compile(re.escape(text), re.DOTALL)
    built, end = [], 0
    for found in _VARIABLE.finditer(text):
        literal = text[end : found.start()]
        built.append(_wildcards(literal).pattern if wild else re.escape(literal))
        key, _, default = (part.strip() for part in found[1].partition(","))
        value = key if key in ("*", "?", "$") else context.get(key.lower(), default.strip("'"))
        if not value or isinstance(value, tuple):
            return _NEVER
        built.append(re.escape(value))
        end = found.end()
    built.append(_wildcards(text[end:]).pattern if wild else re.escape(text[end:]))
    return re.compile("".join(built), re.DOTALL)


def arn_matches(pattern: str, arn: str, context: Context, *, variables: bool = True) -> bool:
    """Match an ARN field by field; a pattern with fewer than six means any for the rest."""
    if pattern == "*":
        return True
    # A colon within a variable separates nothing.
    fields = _VARIABLE.sub(lambda v: v[0].replace(":", "\0"), pattern).split(":", 5)
    fields += ["*"] * (6 - len(fields))
    values = arn.split(":", 5)
    return len(values) == 6 and all(
        _compiled(field.replace("\0", ":"), context, variables=variables).fullmatch(value)
        for field, value in zip(fields, values, strict=True)
    )


# ----------------------------------------------------------------------------- conditions


def _moment(text: str) -> float:
    try:
        return float(text)  # seconds since 1970
    except ValueError:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _in_network(wanted: str, given: str) -> bool:
    return ipaddress.ip_address(given) in ipaddress.ip_network(wanted, strict=False)


def _compared(read: Callable[[str], float], how: Callable[[float, float], bool]) -> _Test:
    return lambda wanted, given, _: how(read(given), read(wanted))


_Test = Callable[[str, str, Context], bool]
_Order = Callable[[float, float], bool]
_ORDERS: dict[str, _Order] = {
    "Equals": lambda given, wanted: given == wanted,
    "LessThan": lambda given, wanted: given < wanted,
    "LessThanEquals": lambda given, wanted: given <= wanted,
    "GreaterThan": lambda given, wanted: given > wanted,
    "GreaterThanEquals": lambda given, wanted: given >= wanted,
}
_TESTS: dict[str, _Test] = {
    "StringEquals": lambda wanted, given, context: bool(
        _compiled(wanted, context, wild=False).fullmatch(given)
    ),
    "StringEqualsIgnoreCase": lambda wanted, given, context: bool(
        re.fullmatch(_compiled(wanted, context, wild=False).pattern, given, re.IGNORECASE)
    ),
    "StringLike": lambda wanted, given, context: bool(_compiled(wanted, context).fullmatch(given)),
    "ArnEquals": lambda wanted, given, context: arn_matches(wanted, given, context),
    "ArnLike": lambda wanted, given, context: arn_matches(wanted, given, context),
    "Bool": lambda wanted, given, _: wanted.lower() == given.lower(),
    "BinaryEquals": lambda wanted, given, _: wanted == given,
    "IpAddress": lambda wanted, given, _: _in_network(wanted, given),
    **{f"Numeric{name}": _compared(float, order) for name, order in _ORDERS.items()},
    **{f"Date{name}": _compared(_moment, order) for name, order in _ORDERS.items()},
}
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals",
    "DateNotEquals": "DateEquals",
    "NotIpAddress": "IpAddress",
}
_QUANTIFIERS = ("ForAllValues", "ForAnyValue")


def operator_parts(operator: str) -> tuple[str, str, bool]:
    """Take an operator apart: quantifier, name, whether IfExists; NotJudged for none of IAM's."""
    quantifier, colon, name = operator.rpartition(":")
    plain = name.removesuffix("IfExists")
    known = plain == "Null" or plain in _TESTS or plain in _NEGATED
    if not known or (colon and quantifier not in _QUANTIFIERS) or name == "NullIfExists":
        raise NotJudged(f"the condition operator {operator}")
    return quantifier, plain, plain != name


def as_texts(value: object) -> list[str]:
    """Give one value or several as texts, as JSON's booleans and numbers are meant."""
    values = value if isinstance(value, list) else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in values]


def holds(operator: str, key: str, wanted: list[str], context: Context) -> bool:
    """Say whether one line of a Condition holds.

    A key that is not there makes a positive operator false, a negated one true, one with IfExists
    true; ForAllValues is true then, ForAnyValue false.
    """
    quantifier, name, if_exists = operator_parts(operator)
    given = context.get(key.lower())
    if name == "Null":
        return any((given is None) == (text.lower() == "true") for text in wanted)
    negated = name in _NEGATED
    if given is None or given == ():
        if if_exists or quantifier:
            return if_exists or quantifier == "ForAllValues"
        return negated
    values = given if isinstance(given, tuple) else (given,)
    test = _TESTS[_NEGATED.get(name, name)]

    def matches(value: str) -> bool:
        try:
            return any(test(text, value, context) for text in wanted)
        except ValueError:  # no number, no date, no address: it equals none
            return False

    if quantifier == "ForAllValues":
        return all(matches(value) != negated for value in values)
    if quantifier == "ForAnyValue":
        return any(matches(value) != negated for value in values)
    return any(matches(value) for value in values) != negated
