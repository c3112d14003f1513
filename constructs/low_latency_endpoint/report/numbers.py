"""Numbers for people: one way to write times, shares and rates."""

from __future__ import annotations

import math


def milliseconds(value: float | None, digits: int = 2) -> str:
    """A time given in milliseconds; in seconds from ten seconds on, a dash for none.

    Examples
    --------
    >>> milliseconds(0.8514), milliseconds(43.21), milliseconds(812.4), milliseconds(61_234)
    ('0.85 ms', '43 ms', '812 ms', '61.2 s')
    >>> milliseconds(20.4, 3), milliseconds(2500, 3), milliseconds(math.nan)
    ('20.4 ms', '2,500 ms', '-')
    """
    if value is None or not math.isfinite(value):
        return "-"
    if value >= 10_000:
        return f"{value / 1000:,.1f} s"
    return f"{value:,.0f} ms" if value >= 10 ** (digits - 1) else f"{value:.{digits}g} ms"


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
    return f"{100 * share:{'.0f' if value >= 9.95 else '.1f' if value >= 1 else '.2g'}} %"


def rate(tps: float) -> str:
    """Requests a second.

    Examples
    --------
    >>> rate(1358.3), rate(0.0333)
    ('1,358', '0.033')
    """
    return f"{tps:,.0f}" if tps >= 10 else f"{tps:.2g}"
