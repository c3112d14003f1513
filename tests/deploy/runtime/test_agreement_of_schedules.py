"""The plan and the local AWS read a cron expression alike, field by field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from local_sagemaker.runtime.scheduled_actions import cron_matches
from low_latency_endpoint.plan.schedule_times import _numbers

DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
#: Place in the expression, least and largest value, and a moment with each value.
FIELDS = {"minute": (0, 0, 59), "hour": (1, 0, 23), "weekday": (4, 1, 7)}
SUNDAY = datetime(2026, 11, 29, tzinfo=UTC)


def moment_of(field: str, value: int) -> datetime:
    if field == "minute":
        return SUNDAY + timedelta(minutes=value)
    if field == "hour":
        return SUNDAY + timedelta(hours=value)
    return SUNDAY + timedelta(days=value - 1)


@st.composite
def parts(draw: st.DrawFn) -> tuple[str, str]:
    """A field and one part of it: a value, a range that may wrap, all of them, and a step."""
    field = draw(st.sampled_from(sorted(FIELDS)))
    _, low, high = FIELDS[field]
    begin = draw(st.integers(low, high))
    end = draw(st.integers(low, high))
    span = draw(st.sampled_from([str(begin), f"{begin}-{end}", "*"]))
    step = draw(st.sampled_from(["", "/1", "/2", "/5"]))
    return field, span + step


@given(parts())
@example(("weekday", "6-2"))
@example(("weekday", "*/2"))
@example(("hour", "22-2"))
def test_both_read_a_field_alike(part: tuple[str, str]) -> None:
    field, text = part
    place, low, high = FIELDS[field]
    expression = ["*", "*", "?", "*", "*", "*"]
    expression[place] = text
    matched = {
        value
        for value in range(low, high + 1)
        if cron_matches(" ".join(expression), moment_of(field, value))
    }
    assert matched == _numbers(text, low, high)


def test_names_wrap_too() -> None:
    fits = [cron_matches("0 0 ? * FRI-MON *", SUNDAY + timedelta(days=day)) for day in range(7)]
    assert fits == [True, True, False, False, False, True, True]
    assert _numbers("FRI-MON", 1, 7, DAYS) == {1, 2, 6, 7}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("75 0 * * ? *", "75"),
        ("0 0 LW * ? *", "invalid literal"),
        ("0 0 L-3 * ? *", "invalid literal"),
        ("x", "not enough values"),
    ],
)
def test_what_cannot_be_read_is_an_error_at_any_moment(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        cron_matches(text, SUNDAY + timedelta(hours=7))
