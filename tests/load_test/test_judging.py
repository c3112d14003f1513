"""Held, broken, unclear: the parts of a judgement, each on both sides of its bound."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.measurement import Measurement
from low_latency_endpoint.load_test.search.bounds import (
    Bounds,
    mean_bounds,
    quantile_bounds,
    requests_at_share,
)
from low_latency_endpoint.load_test.search.judging import (
    Judgement,
    LatencyGoal,
    failure_bounds,
    judge,
    piles_up,
    quantile_of,
)

GOAL = LatencyGoal({"p50": 0.2})
#: So many that 0 failures show at most 0.1 % of them: 0.999 ** 3,000 is 4.97 %, below 5 %.
QUICK = LatencyHistogram.of([0.1] * 3_000)
SLOW = LatencyHistogram.of([0.3] * 1_000)


def measured(
    latency: LatencyHistogram = QUICK, failed: int = 0, sent: int = 3_000, **more: Any
) -> Measurement:
    if failed:
        more["errors"] = {"503 Busy": failed}
    return Measurement(latency=latency, sent=sent, **more)


def judged(
    p50_by_second: Sequence[float] = (),
    latencies: LatencyHistogram = QUICK,
    client_bound: Sequence[str] = (),
    **more: Any,
) -> Judgement:
    return judge(
        GOAL, measured(latencies, **more), p50_by_second=p50_by_second, client_bound=client_bound
    )


@pytest.mark.parametrize(
    ("seconds", "rising"),
    [
        ([1.0, 1.0, 1.1, 1.2, 1.3, 1.3], True),  # exactly three tenths more at the end
        ([1.0, 1.0, 1.1, 1.2, 1.29, 1.29], False),  # a little less
        ([1.0, 1.2, 1.3, 1.4, 1.5], False),  # five seconds are no trend
        ([1, 2, 3, 4, 5, 6, 7, 8], True),
        ([2, 1, 6, 5, 4, 3, 7, 8], False),  # 21 pairs rise, 7 fall: tau is 0.5, and not above
        ([1, 2, 5, 6, 3, 4, 7, 8], True),  # 24 and 4
        (
            [0, math.nan, 1.0, 1.0, 1.1, 1.2, 1.3, 1.3],
            True,
        ),  # seconds without an answer are no figure
        # With them 24 of 45 pairs would rise, and the last third be far above the first.
        ([0.0] * 4 + [1.0] * 6, False),
        ([1.0] * 6 + [math.inf] * 4, False),
        ([1.0, 1.0, 1.1, 1.1, 1.2, 1.5], True),  # the last third are two of six, 1.35 in the median
        ([1.3, 1.3, 1.2, 1.1, 1.0, 1.0], False),
        ([0.1, 0.1, 0.11, 0.12, 0.14, 0.14], True),  # whatever the unit
        # Thirds of four: 1.1 and 1.4. Quarters would be 1.0 and 1.4.
        ([1.0, 1.0, 1.2, 1.2, 1.3, 1.3, 1.3, 1.3, 1.4, 1.4, 1.4, 1.4], False),
    ],
)
def test_a_median_that_still_rises_says_nothing_for_certain(
    seconds: list[float], rising: bool
) -> None:
    found = judged(seconds)
    assert found.rising is rising
    assert found.outcome == ("unclear" if rising else "held")
    assert found.kept is not rising
    assert ("latency still rose when the step ended" in found.reasons) is rising


def test_a_step_of_many_seconds_is_thinned_and_judged_alike() -> None:
    assert judged([1 + second / 100 for second in range(600)]).rising
    assert not judged([1 + second % 2 for second in range(600)]).rising


def test_nothing_answered_bounds_nothing() -> None:
    for made in (mean_bounds(LatencyHistogram()), quantile_bounds(LatencyHistogram(), 0.99)):
        assert math.isnan(made.value)
        assert (made.low, made.high, made.samples) == (0.0, math.inf, 0)
    one = mean_bounds(LatencyHistogram.of([0.1]))
    assert one.high == math.inf
    assert one.low <= 0.1001


def test_a_mean_is_judged_by_its_own_bounds() -> None:
    goal = LatencyGoal({"Average": 0.2})
    mixed = LatencyHistogram.of([0.05] * 2_700 + [0.8] * 300)  # 125 ms in the mean, p50 50 ms
    found = judge(goal, measured(mixed))
    assert found.outcome == "held"
    assert found.bounds["Average"].value == pytest.approx(0.125, rel=0.01)


def test_a_target_for_the_first_byte_of_whole_answers_is_unclear() -> None:
    goal = LatencyGoal({"ttfb-p99": 0.2})
    assert judge(goal, measured()).outcome == "unclear"
    assert judge(goal, measured(first_byte=QUICK)).outcome == "held"


def test_a_bound_that_is_none_is_said_and_left_out_of_json() -> None:
    """Of ten requests at most one lies beyond p99, for certain enough; that none does, is not."""
    few = LatencyHistogram.of([0.1] * 10)
    reason, _ = judge(LatencyGoal({"p99": 0.2}), measured(few, sent=10)).reasons
    assert reason == (
        "p99 100 ms (100 to no bound) may miss 200 ms; if none is late, 299 requests would show that "
        "it keeps it"
    )
    assert Bounds(0.1, 0.0, math.inf, 10).to_dict() == {
        "ms": 100.0,
        "low_ms": 0.0,
        "high_ms": None,
        "samples": 10,
    }


def test_a_target_that_is_just_met_is_kept() -> None:
    exactly = LatencyGoal({"p50": QUICK.percentile(50)})
    assert judge(exactly, measured()).outcome == "held"


@pytest.mark.parametrize("name", ["p0", "p100", "p-5", "ttfb-p0", "q50", "p"])
def test_statistics_that_are_none(name: str) -> None:
    with pytest.raises(ConfigurationError, match="LLT110"):
        quantile_of(name)


def test_bounds_are_said_in_milliseconds() -> None:
    held, errors = judged().reasons
    assert errors == "none of 3,000 requests failed: at most 0.1 % do"
    assert held == "p50 100 ms (100 to 100) keeps 200 ms"
    held, _ = judged(latencies=LatencyHistogram.of([0.123456] * 3_000)).reasons
    assert held == "p50 123.5 ms (123.5 to 123.5) keeps 200 ms"
    broken = judged(latencies=SLOW)
    assert (broken.outcome, broken.kept, broken.errors) == ("broken", False, False)
    assert broken.reasons[0].endswith("misses 200 ms")


@pytest.mark.parametrize(
    ("failed", "outcome", "kept"),
    [
        (0, "held", True),
        (1, "unclear", True),
        (3, "unclear", True),
        (4, "unclear", False),
        (6, "unclear", False),
        (7, "broken", False),
        (900, "broken", False),
    ],
)
def test_errors_against_one_in_a_thousand(failed: int, outcome: str, kept: bool) -> None:
    """Of 3,000 requests at a share of 0.001, a Poisson number of 3: none by chance in 4.97 %, at
    most one in 19.9 %; 6 or more in 8.4 %, 7 or more in 3.4 %."""
    found = judged(failed=failed)
    assert (found.outcome, found.kept) == (outcome, kept)
    assert found.errors is (outcome == "broken")
    assert found.latency_held is (outcome != "broken")
    if failed:
        assert found.reasons[0].startswith(
            f"{failed} of 3,000 requests failed ({failed / 3000:.2%}): {failed} times 503 Busy"
        )


@pytest.mark.parametrize("failed", [0, 1, 2])
def test_how_many_requests_would_show_the_errors(failed: int) -> None:
    """If as large a share fails: without a failure 2,995, as 0.999^2995 is 5 %."""
    found = judged(failed=failed, sent=2_990)
    assert found.outcome == "unclear"
    told = re.search(r"([\d,]+) requests without a (failure|larger share)", found.reasons[0])
    assert told is not None
    needed = int(told[1].replace(",", ""))
    assert needed == requests_at_share(failed / 2_990, 0.001)
    assert binom.cdf(math.ceil(needed * failed / 2_990), needed, 0.001) <= 0.05
    assert failed or needed == 2_995


def test_how_long_a_test_has_to_be_for_the_share_that_was_late() -> None:
    """65 of 7,200 are 0.903 % late: 21,600 with 195 show 1.016 %, and 28,800 with 260 just 1 %."""
    needed = requests_at_share(65 / 7_200, 0.01)
    assert needed is not None
    assert 27_000 < needed < 30_000
    assert requests_at_share(0.01, 0.01) is None
    assert requests_at_share(0.0099999, 0.01) is None


@given(st.floats(0.0, 0.9), st.sampled_from([0.001, 0.01, 0.05]))
def test_so_many_requests_show_it_and_half_of_them_do_not(part: float, share: float) -> None:
    seen = part * share
    needed = requests_at_share(seen, share)
    assert needed is not None
    assert binom.cdf(math.ceil(seen * needed), needed, share) <= 0.05 * (1 + 1e-9)
    assert binom.cdf(math.ceil(seen * needed / 2), needed // 2, share) > 0.05


def test_failures_that_come_at_once_count_as_few() -> None:
    """Of 3,000 requests of which ten fail at once, as much is known as 300 independent ones tell."""
    found = judge(GOAL, measured(), worth={"failures": 10.0})
    assert (found.outcome, found.latency_held) == ("unclear", True)
    assert found.failures.samples == 300
    assert found.failures.high == pytest.approx(1 - 0.05 ** (1 / 300))
    assert "29,950 requests" in found.reasons[-1]


def test_no_errors_allowed_is_none_allowed() -> None:
    strict = LatencyGoal({}, allowed_errors=0)
    assert judge(strict, measured(failed=1)).outcome == "broken"
    held = judge(strict, measured())
    said = "none of 3,000 requests failed: at most 0.1 % do"
    assert (held.outcome, held.reasons) == ("held", (said,))
    assert judge(strict, measured(LatencyHistogram(), sent=0)).outcome == "held"


@pytest.mark.parametrize(
    ("share", "valid"), [(-0.001, False), (0, True), (0.5, True), (0.501, False)]
)
def test_the_allowed_share_of_errors_is_none_to_half_of_them(share: float, valid: bool) -> None:
    if valid:
        assert LatencyGoal({}, allowed_errors=share).allowed_errors == share
    else:
        with pytest.raises(ConfigurationError, match="LLT116"):
            LatencyGoal({}, allowed_errors=share)


def test_requests_that_depend_on_each_other_are_fewer_witnesses() -> None:
    """Of 3,000 requests, three of which are worth one: 1,000 independent ones, and never none."""
    for statistic in ("p50", "Average"):
        goal = LatencyGoal({statistic: 0.2})
        for worth, samples in ((3.0, 1_000), (5_000.0, 1)):
            found = judge(goal, measured(), worth={statistic: worth})
            assert found.bounds[statistic].samples == samples
        assert judge(goal, measured(), worth={"p99": 3.0}).bounds[statistic].samples == 3_000


@pytest.mark.parametrize(
    ("under_way", "piling"),
    [
        # Three deviations of a Poisson number, the root of one more: 3 √4 = 6 above 3.
        ([3, 3, 5, 7, 9, 9], False),
        ([3, 3, 5, 7, 10, 10], True),
        ([2, 2, 4, 6, 8, 8], True),  # 3 √3 is 5.2
        ([2, 2, 4, 5, 7, 7], False),
        ([100, 100, 110, 120, 135, 135], True),  # 3 √101 is 30.1, and they rise by a third
        ([100, 100, 110, 120, 129, 129], False),
        ([1, 9], False),
        ([], False),
    ],
)
def test_more_requests_under_way_than_chance_explains_pile_up(
    under_way: list[float], piling: bool
) -> None:
    assert piles_up(under_way) is piling


def test_what_piles_up_is_unclear_and_not_kept() -> None:
    found = judge(GOAL, measured(), piling_up=True)
    assert (found.outcome, found.kept, found.rising) == ("unclear", False, False)
    assert found.reasons == ("ever more requests were under way: answers did not keep pace",)


def test_more_failures_than_are_counted_one_by_one() -> None:
    assert judged(failed=20_000, sent=1_000_000).outcome == "broken"


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ({}, True),
        ({"intended": 3_001}, False),
        ({"latencies": SLOW}, False),
        ({"p50_by_second": [1, 2, 3, 4, 5, 6]}, False),
        ({"errors": {"timeout": 4}}, False),
    ],
)
def test_what_a_limited_generator_still_shows(more: dict[str, object], kept: bool) -> None:
    found = judged(client_bound=("busy",), **more)  # type: ignore[arg-type]
    assert (found.outcome, found.kept, found.reasons) == ("client-bound", kept, ("busy",))


def test_what_the_endpoint_answers_counts_even_then() -> None:
    mixed = {"503 Busy": 10, "timeout": 10}
    assert judged(client_bound=("busy",), errors=mixed).outcome == "broken"
    # Of 3,000 answers six or more fail in 8.4 % at the share allowed: that may be chance.
    for answered in (1, 6):
        waited = {"503 Busy": answered, "timeout": 19}
        assert judged(client_bound=("busy",), errors=waited).outcome == "client-bound"


@given(
    st.integers(1_000, 100_000),
    st.floats(0.001, 1),
    st.floats(0.01, 1),
    st.sampled_from(["503 Busy", "503 Service Unavailable", "424 ModelError 503", "500 Error"]),
)
def test_a_step_of_which_most_was_never_sent_is_the_generators(
    due: int, sent_share: float, failed_share: float, kind: str
) -> None:
    """Requests that failed at half of the load and less say nothing of the whole."""
    sent = max(100, round(due * sent_share))
    errors = {kind: max(10, round(sent * failed_share))}
    most_sent = 2 * sent >= due
    few_late = judged(client_bound=("never sent",), errors=errors, sent=sent, intended=due)
    assert few_late.outcome == ("broken" if most_sent else "client-bound")
    assert not few_late.kept
    # A generator that was not the limit is never blamed for it.
    assert judged(errors=errors, sent=sent, intended=due).outcome == "broken"


def test_what_reaches_no_instance_is_told_even_then() -> None:
    """Connections that are not made keep those of the generator busy: that is no load of its own."""
    errors = {"connection timeout": 900}
    found = judged(client_bound=("never sent",), errors=errors, sent=1_000, intended=10_000)
    assert (found.outcome, found.errors) == ("broken", True)


def test_the_three_commonest_kinds_are_named() -> None:
    kinds = {"a": 1, "b": 40, "c": 30, "d": 20}
    assert judged(errors=kinds).reasons[0].endswith(": 40 times b, 30 times c, 20 times d")


@given(
    st.integers(1, 100_000), st.floats(0, 1), st.floats(1, 5000), st.sampled_from([0.8, 0.95, 0.99])
)
def test_bounds_of_clustered_failures_hold_the_share_that_was_seen(
    sent: int, share: float, worth: float, confidence: float
) -> None:
    """Of 6,000 requests, 20 worth one, a single failure is less than one independent one."""
    failed = round(sent * share)
    bounds = failure_bounds(failed, sent, worth, confidence)
    assert bounds is not None
    assert bounds.low <= bounds.value == failed / sent <= bounds.high
