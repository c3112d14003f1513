"""Numbers that people read: no powers of ten, and no milliseconds of five digits, anywhere."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.report.numbers import milliseconds, percent, plain_number, rate, readable

ROOT = Path(__file__).parents[2] / "constructs" / "low_latency_endpoint"
ROOMS = (
    "change",
    "cli",
    "facts",
    "load_test",
    "operate",
    "options",
    "plan",
    "settings",
    "simulate",
)
UNREADABLE = re.compile(r"\de[+-]\d|(?<![.\d])\d{5,} ms|\d\d,\d{3} ms")
#: What only programs read, or Python itself: CSV, keys of JSON, PromQL, YAML, and limits of fields.
FOR_PROGRAMS = {
    "load_test/search/result_file.py",
    "load_test/search/steps_table.py",
    "operate/price_list.py",
    "facts/container_metrics.py",
    "monitoring/dashboard_panels.py",
    "facts/limit_kinds.py",
    "change/settings_differences.py",
    "change/verdict.py",
    "plan/recorded_traffic.py",
}


@given(st.just(0.0) | st.floats(min_value=1e-9, max_value=1e15), st.integers(1, 6))
def test_a_number_is_read_at_once(value: float, digits: int) -> None:
    told = [readable(value, digits), plain_number(value, digits), percent(value), rate(value)]
    told += [milliseconds(value, digits)]
    assert [text for text in told if UNREADABLE.search(text)] == []
    read = float(readable(value, digits).replace(",", ""))
    assert math.isclose(read, value, rel_tol=0.6 * 10 ** (1 - digits), abs_tol=1e-300)
    assert float(plain_number(value, digits)) == read


@pytest.mark.parametrize(
    "files", [*(f"{room}/**/*.py" for room in ROOMS), "monitoring/dashboard*.py"]
)
def test_every_number_that_is_told_goes_through_the_formatter(files: str) -> None:
    """``:g`` makes 1e+06 of a million, and ``:.3g`` of a thousand; a percentile's name has no more."""
    left = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in ROOT.glob(files)
        if str(path.relative_to(ROOT)) not in FOR_PROGRAMS
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if "float(f" not in line  # rounded, not told
        and (re.search(r"(?<!p)\{[^{}]+:,?(\.\d+)?g\}", line) or re.search(r":,?\.\df\} ms", line))
    ]
    assert left == []
