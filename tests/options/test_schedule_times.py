"""Times of scheduled actions: none that Application Auto Scaling refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_sagemaker.runtime.scheduled_actions import is_schedule
from low_latency_endpoint import ScalingSchedule
from low_latency_endpoint.errors import ConfigurationError

NUMBERS = st.integers(0, 70).map(str)
ITEMS = st.one_of(
    NUMBERS,
    st.sampled_from(["*", "?", "L", "W", "LW", "MON", "mon", "JAN", "6L", "3W", "2#1", "2027", ""]),
    st.builds("{}-{}".format, NUMBERS, NUMBERS),
    st.builds("{}/{}".format, st.sampled_from(["*", "0", "5"]), NUMBERS),
)
FIELDS = st.lists(ITEMS, min_size=1, max_size=2).map(",".join)
CRONS = st.lists(FIELDS, min_size=5, max_size=7).map(" ".join)
RATES = st.builds("{} {}".format, NUMBERS, st.sampled_from(["minute", "minutes", "days", "week"]))
TIMES = st.builds("2027-{:02}-{:02}T{:02}:00:00".format, *[st.integers(0, 33)] * 3)


@given(
    st.one_of(
        *(
            st.tuples(st.just(kind), texts)
            for kind, texts in (("cron", CRONS), ("rate", RATES), ("at", TIMES))
        )
    )
)
def test_what_is_taken_the_local_aws_takes(stated):
    """EventBridge user guide, cron and rate expressions, which Application Auto Scaling names."""
    kind, text = stated
    try:
        expression = ScalingSchedule(name="a", min=2, **{kind: text}).expression
    except ConfigurationError:
        return
    assert is_schedule(expression, kind)


@pytest.mark.parametrize(
    "cron",
    [
        "0 10 * * ? *",
        "15 12 ? * MON-FRI *",
        "0/15 8-17 1,15 JAN,7 ? 2027-2030",
        "0 0 L * ? *",
        "0 8 3W * ? *",
        "0 8 ? * 2#1 *",
        "30 6 ? * 6L *",
    ],
)
def test_times_of_the_guide_are_taken(cron):
    assert ScalingSchedule(name="a", cron=cron, min=2).expression == f"cron({cron})"
