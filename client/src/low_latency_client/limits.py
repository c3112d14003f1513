"""What arguments may be: numbers in a range, the name of a Region, a duration as text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from .errors import ErrorRule, rule

#: The largest request and answer: the developer guide's "25 MB", in bytes of 1,024.
#: Source: docs.aws.amazon.com/sagemaker/latest/dg/deploy-model-options.html
LARGEST_BODY_BYTES = 25 * 1024 * 1024
#: The name of a Region, such as us-east-1.
REGION_NAME = r"[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}"
REGION = rule(
    "LLC124",
    "the Region is not valid",
    fix="Write the code of a Region.",
    source="/general/latest/gr/rande.html",
)
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}
_DURATION = re.compile(rf"([0-9]+(?:\.[0-9]+)?)({'|'.join(_UNITS)})")


@dataclass(frozen=True)
class Range:
    """Numbers from ``minimum`` to ``maximum``, both allowed.

    Parameters
    ----------
    rule : ErrorRule
        The rule that another value breaks.
    minimum, maximum : float
        The smallest and the largest allowed number.
    unit : str, optional
        What the number counts, for messages.
    whole : bool, optional
        Whether the number must be whole, which is the default.

    Examples
    --------
    >>> percent = Range(ErrorRule("LLC102", "out of range", fix="Give a share."), 1, 100, "percent")
    >>> percent.check(7, "share"), percent.allowed
    (7, 'whole numbers from 1 to 100 percent')
    """

    rule: ErrorRule
    minimum: float
    maximum: float
    unit: str = ""
    whole: bool = True

    @property
    def allowed(self) -> str:
        """The allowed numbers in words."""
        kind = "whole numbers from " if self.whole else ""
        words = f"{kind}{self.minimum} to {self.maximum} {self.unit}"
        return words.strip()

    def check(self, value: Any, where: str) -> Any:
        """Return the value, or raise the error of the rule."""
        if self._contains(value):
            return value
        got = f"{value!r} {self.unit}".strip()
        raise self.rule.error(got=got, allowed=self.allowed, where=where)

    def _contains(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if not math.isfinite(value):
            return False
        if self.whole and not isinstance(value, int):
            return False
        return self.minimum <= value <= self.maximum


def duration_of_text(text: str) -> timedelta | None:
    """Return the duration that a text says, or None if it says none.

    >>> duration_of_text("200ms"), duration_of_text("1.5s"), duration_of_text("200")
    (datetime.timedelta(microseconds=200000), datetime.timedelta(seconds=1, microseconds=500000), None)
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    try:
        return timedelta(**{_UNITS[match[2]]: float(match[1])})
    except OverflowError:  # more than a clock can measure
        return None
