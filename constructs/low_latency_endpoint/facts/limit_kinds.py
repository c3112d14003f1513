"""The three kinds of limits: a :class:`Range` of numbers, a :class:`Pattern` of text, a :class:`Choice`.

``limit.check(value)`` raises the coded :class:`~low_latency_endpoint.errors.ConfigurationError` or
returns the value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigurationError, ErrorRule, did_you_mean, rule
from ..errors.given_files import is_finite
from .token_values import PLAN_NEEDS_VALUES, is_token

#: The fix of a limit that the allowed values say all about.
USE_AN_ALLOWED_VALUE = "Use an allowed value."
_PARTS_WITHOUT_A_PLAN = (
    "State a value. LowLatencyEndpoint and its options take none that is a token; where it has to be "
    "one, use the parts, which make no plan: ProductionVariant(instance_type=InstanceType(param), "
    "initial_instance_count=...) and Endpoint.scale(min_instances=..., max_instances=...)."
)


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from ``minimum`` to ``maximum``, both allowed; ``None`` leaves that side open."""

    rule: ErrorRule
    name: str
    minimum: float | None
    maximum: float | None
    unit: str = ""
    whole: bool = True

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        unit = f" {self.unit}" if self.unit else ""
        if self.maximum is None:
            low = "any number" if self.minimum is None else f"at least {digits(self.minimum)}"
            return low + unit
        if self.minimum is None:
            return f"at most {digits(self.maximum)}{unit}"
        return f"{digits(self.minimum)} to {digits(self.maximum)}{unit}"

    def holds(self, value: Any) -> bool:
        """Whether the value is a number of the right kind inside the range."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if not is_finite(value):
            return False
        if self.whole and value != int(value):
            return False
        return (self.minimum is None or value >= self.minimum) and (
            self.maximum is None or value <= self.maximum
        )

    def check(self, value: Any, where: str = "") -> Any:
        """Return the value, or raise the limit's error."""
        if is_token(value):
            raise _token_error(self, where)
        if not self.holds(value):
            unit = f" {self.unit}" if self.unit and not isinstance(value, str) else ""
            kind = "a whole number, " if self.whole and not _is_whole(value) else ""
            raise self.rule.error(
                got=f"{value!r}{unit}",
                allowed=kind + self.allowed,
                where=where,
                fix=self._fix(value),
            )
        return value

    def nearest(self, value: float) -> list[float]:
        """The allowed numbers next to one that is not allowed."""
        if self.minimum is not None and value < self.minimum:
            return [self.minimum]
        if self.maximum is not None and value > self.maximum:
            return [self.maximum]
        return [near for near in (math.floor(value), math.ceil(value)) if self.holds(near)]

    def _fix(self, value: Any) -> str:
        """The nearest value; of a share in place of percent, the percentage."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return ""
        if not is_finite(value):
            return ""
        if self.unit == "percent" and 0 < value < 1 and self.holds(round(100 * value, 9)):
            return f"Write {100 * value:g}, in percent."
        if self.rule.fix != USE_AN_ALLOWED_VALUE:
            return ""
        if self.minimum is not None and value < self.minimum:
            above = "more than 0" if 0 < self.minimum < 1e-3 else f"{digits(self.minimum)} or more"
            return f"Give {above}."
        if self.maximum is not None and value > self.maximum:
            return f"Give {digits(self.maximum)} or less."
        near = self.nearest(value)
        return f"Give {' or '.join(map(str, near))}." if near else ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Text that matches a regular expression as a whole, up to a length.

    Letters and digits are ASCII's, as in the schema that editors read, unless ``unicode`` is set.
    """

    rule: ErrorRule
    name: str
    regex: str
    form: str  # the regular expression in words
    max_length: int | None = None
    unicode: bool = False
    prefix: str = ""  # what is often left out, where the rest is like ``bare``
    bare: str = ".+"
    has_home: bool = False  # an ARN, or an image: the stack's Region has to be its own

    @property
    def allowed(self) -> str:
        """The allowed form and length in words."""
        return self.form + (f", at most {self.max_length} characters" if self.max_length else "")

    def holds(self, value: Any) -> bool:
        """Whether the value is text of this form and length."""
        return (
            isinstance(value, str)
            and (self.max_length is None or len(value) <= self.max_length)
            and re.fullmatch(self.regex, value, 0 if self.unicode else re.ASCII) is not None
        )

    def check(self, value: Any, where: str = "") -> Any:
        """Return the value, or raise the limit's error."""
        if is_token(value):
            raise _token_error(self, where)
        if not self.holds(value):
            meant = next(filter(self.holds, self._meant(value)), None)
            raise self.rule.error(
                got=repr(value),
                allowed=self.allowed,
                where=where,
                fix=f"Write {meant}." if meant else "",
            )
        return value

    def _meant(self, value: Any) -> Iterator[str]:
        """What is near the value, the nearest first."""
        if not isinstance(value, str):
            return
        yield value.strip()
        if self.prefix and re.fullmatch(self.bare, value):
            yield self.prefix + value
        for mark in ("-", "_", ".", ""):
            marked = re.sub(r"[^a-zA-Z0-9]+", mark, value).strip(mark)
            for each in (marked, marked.lower(), marked[: self.max_length].rstrip(mark)):
                yield from (each, f"{self.prefix}{each}" if self.bare == ".+" else each)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the values named."""

    rule: ErrorRule
    name: str
    values: tuple[Any, ...]

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        *others, last = map(str, self.values)
        return f"{', '.join(others)} or {last}" if others else last

    def holds(self, value: Any) -> bool:
        """Whether the value is one of those named; true is not 1."""
        is_switch = isinstance(value, bool)
        return any(isinstance(own, bool) == is_switch and own == value for own in self.values)

    def check(self, value: Any, where: str = "") -> Any:
        """Return the value, or raise the limit's error."""
        if is_token(value):
            raise _token_error(self, where)
        if not self.holds(value):
            raise self.error(value, where)
        return value

    def error(self, value: Any, where: str) -> ConfigurationError:
        """That a value is none of those named, and which one may be meant."""
        fix = did_you_mean(str(value), map(str, self.values))
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and isinstance(self.values[0], int):
            fix = f"Did you mean {min(self.values, key=lambda each: abs(each - value))}?"
        return self.rule.error(got=repr(value), allowed=self.allowed, where=where, fix=fix)


Limit = Range | Pattern | Choice


def _token_error(limit: Limit, where: str) -> ConfigurationError:
    """Of a limit that is asked about a token, where no value may be left open."""
    return limit.rule.error(
        what=f"{limit.name} has no value at synth",
        got="a token",
        allowed=f"{limit.allowed}, known at synth",
        where=where,
    )


def digits(number: float) -> str:
    """A number without an exponent, unless that would be long: ``1000000``, ``0.000001``."""
    plain = f"{number:.6f}".rstrip("0").rstrip(".")
    return plain if float(plain) == number and len(plain) <= 12 else f"{number:g}"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (
        isinstance(value, float) and math.isfinite(value) and value == int(value)
    )


def number_range(
    code: str,
    name: str,
    minimum: float | None,
    maximum: float | None,
    *,
    unit: str = "",
    source: str = "",
    whole: bool = True,
    fix: str = USE_AN_ALLOWED_VALUE,
) -> Range:
    """A range with the rule that it states: what is named is out of range."""
    made = rule(code, f"{name} is out of range", fix=fix, source=source)
    return Range(made, name, minimum, maximum, unit, whole)


def text_form(
    code: str,
    name: str,
    regex: str,
    form: str,
    *,
    max_length: int | None = None,
    source: str = "",
    fix: str = "",
    unicode: bool = False,
    prefix: str = "",
    bare: str = ".+",
    has_home: bool = False,
) -> Pattern:
    """A form of text with the rule that it states."""
    made = rule(code, f"{name} is not valid", fix=fix or f"Write {form}.", source=source)
    return Pattern(made, name, regex, form, max_length, unicode, prefix, bare, has_home)


def one_of(
    code: str,
    name: str,
    values: tuple[Any, ...],
    *,
    source: str = "",
    fix: str = USE_AN_ALLOWED_VALUE,
) -> Choice:
    made = rule(code, f"{name} is not valid", fix=fix, source=source)
    return Choice(made, name, values)


def check_known(limit: Limit, value: Any, where: str = "") -> Any:
    """Return the value within the limit, for plans, which cannot calculate with tokens."""
    if is_token(value):
        raise PLAN_NEEDS_VALUES.error(
            what=f"the plan needs {limit.name}, but a token has no value at synth",
            got="a token",
            allowed=f"{limit.allowed}, known at synth",
            where=where,
            fix=_PARTS_WITHOUT_A_PLAN if "instance" in limit.name else "",
        )
    return limit.check(value, where)
