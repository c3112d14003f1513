"""Numbers for people: one way to write times, shares and rates."""

from __future__ import annotations

import math
from fractions import Fraction


def readable(value: float | None, digits: int = 6) -> str:
    """A number with so many significant digits; no powers of ten; a dash for none.

    Examples
    --------
    >>> readable(31_370, 4), readable(999.96, 3), readable(1_000_000), readable(0.25), readable(0.0000123, 2)
    ('31,370', '1,000', '1,000,000', '0.25', '0.000012')
    """
    if value is None:
        return "-"
    size = abs(value)
    if not math.isfinite(value) or size >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    if 0 < size < 1e-4:
        return f"{value:.{digits - 1 - math.floor(math.log10(size))}f}".rstrip("0")
    return f"{value:,.{digits}g}"


def plain_number(value: float | None, digits: int = 6) -> str:
    """The same for settings files and command lines, which know no commas.

    Examples
    --------
    >>> plain_number(1_250_000), plain_number(1234.5)
    ('1250000', '1234.5')
    """
    return readable(value, digits).replace(",", "")


def milliseconds(value: float | None, digits: int = 2) -> str:
    """A time given in milliseconds; in seconds from ten seconds on, a dash for none.

    Examples
    --------
    >>> milliseconds(0.8514), milliseconds(43.21), milliseconds(812.4), milliseconds(61_234)
    ('0.85 ms', '43 ms', '812 ms', '61.2 s')
    >>> milliseconds(20.4, 3), milliseconds(2500, 3), milliseconds(15_000, 6), milliseconds(math.nan)
    ('20.4 ms', '2,500 ms', '15 s', '-')
    """
    if value is None or not math.isfinite(value):
        return "-"
    if value >= 9_999.5:
        return f"{readable(value / 1000, digits)} s" if digits > 3 else f"{value / 1000:,.1f} s"
    return f"{readable(value, digits)} ms"


def percent(share: float | None) -> str:
    """A share: in whole percent from ten on, two digits below; a dash for none.

    Examples
    --------
    >>> percent(0.2268), percent(0.034), percent(0.0402), percent(0.0006), percent(0)
    ('23 %', '3.4 %', '4.0 %', '0.06 %', '0 %')
    """
    if share is None:
        return "-"
    value = abs(100 * share)
    if 0 < value < 1:
        return f"{readable(100 * share, 2)} %"
    return f"{100 * share:,.{0 if value >= 9.95 or not value else 1}f} %"


def rate(tps: float) -> str:
    """Requests a second.

    Examples
    --------
    >>> rate(1358.3), rate(0.0333)
    ('1,358', '0.033')
    """
    return readable(tps, 2)


def percent_above(share: Fraction | float, limit: float) -> str:
    """A share above a limit in percent, with as many digits as show that it is above.

    Examples
    --------
    >>> percent_above(0.9047, 0.9), percent_above(1.25, 0.9)
    ('90.5%', '125%')
    """
    digits = 0
    while round(float(share), digits + 2) <= limit < share and digits < 6:
        digits += 1
    return f"{float(share):.{digits}%}"


def number_of(text: str) -> float:
    """A number that a person typed; ``ValueError`` for one in other digits, or with ``_``.

    >>> number_of("2.5")
    2.5
    """
    if not text.isascii() or "_" in text:
        raise ValueError(f"{text} is no number")
    return float(text)
