"""Patterns over time: named in any form of theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from low_latency_endpoint.operate.diagnose.tree import walk

from .readings import PerMinute, Readings, constant, scaled

#: The same fault seen by a percentile, or by the average alone.
_SEEN = st.sampled_from(
    [
        {"statistics": ("p50", "p90", "p99", "Average"), "limits": {"p99": 160.0}},
        {"statistics": ("p99",), "limits": {"p99": 160.0}},
        {"statistics": ("Average",), "limits": {"Average": 90.0}},
        {"statistics": ("p50", "p99"), "limits": {"p50": 80.0, "p99": 200.0}},
    ]
)
#: The same cases each time: noise and loss are chance, and one in thousands hides a fault.
_examples = settings(max_examples=40, deadline=None, derandomize=True)


def _read(noise: float, lost: float, seen: Any = _SEEN) -> st.SearchStrategy[dict[str, Any]]:
    """What CloudWatch and the endpoint add: noise of each value, and datapoints that are missing."""
    return st.builds(
        lambda seen, **more: {**seen, **more},
        seen,
        seed=st.integers(0, 10_000),
        noise=st.floats(0.0, noise),
        lost=st.floats(0.0, lost),
    )


# -------------------------------------------------------------------------------------- periodic


@_examples
@given(_read(0.08, 0.1), st.integers(2, 15), st.integers(0, 14), st.sampled_from([90, 240]))
# A slow minute that only the other statistic saw used to be a slow container.
@example(
    {
        "statistics": ("p50", "p99"),
        "limits": {"p50": 80.0, "p99": 200.0},
        "seed": 2192,
        "lost": 0.0625,
        "noise": 0.0,
    },
    2,
    0,
    90,
)
def test_periodic_whatever_the_period_and_phase(
    read: dict[str, Any], period: int, phase: int, minutes: int
) -> None:
    made = Readings(
        minutes=minutes, latency=lambda m: 400 if (m + phase) % period == 0 else 40, **read
    )
    assert made.ids() == ["LLD131"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Readings(minutes=2880, latency=lambda m: 400 if m % 60 < 2 else 40), "60 min"),
        (lambda: Readings(minutes=180, latency=lambda m: 400 if m % 7.5 < 1 else 40), "7.5 min"),
        (
            lambda: Readings(
                minutes=7 * 1440, step=5, latency=lambda m: 400 if m % 360 == 7 else 40
            ),
            "6 h",
        ),
        (
            lambda: Readings(
                minutes=120, tail_latency=lambda m: 500 if m % 6 == 1 else 80, gaps=((30, 41),)
            ),
            "6 min",
        ),
        (lambda: Readings(minutes=120, limits={}, latency=lambda m: 400 if m % 8 else 40), ""),
    ],
    ids=["each-hour", "7.5-min", "a-week", "tail-with-gap", "mostly-slow"],
)
def test_periodic_in_other_windows(made: Callable[[], Readings], words: str, seed: int) -> None:
    readings = made()
    readings.seed = seed
    found = readings.findings()
    if not words:  # seven minutes of eight slow is slow, and no limit says that it is too slow
        assert found == []
        return
    (finding,) = found
    assert finding.id == "LLD131"
    assert f"slow every {words} (" in finding.evidence[0].text


def test_a_rhythm_of_a_tail_alone_is_a_risk() -> None:
    """A hundredth of every sixth minute's requests: p99 of the window holds."""
    made = Readings(
        minutes=120,
        tail_latency=lambda m: 500 if m % 6 == 1 else 80,
        statistics=("p50", "p99", "Average"),
    )
    (finding,) = made.findings()
    assert finding.risk  # 1 % of a sixth
    whole = Readings(minutes=120, latency=lambda m: 500 if m % 6 == 1 else 40)
    assert not whole.findings()[0].risk


# ------------------------------------------------------------------------------------- after idle


@_examples
@given(
    _read(0.08, 0.05),
    st.lists(st.tuples(st.integers(25, 50), st.integers(8, 40)), min_size=1, max_size=4),
    st.integers(3, 8),
)
def test_slow_after_a_pause(
    read: dict[str, Any], stretches: list[tuple[int, int]], cold: int
) -> None:
    # One pause and one slow minute that was not lost are no pattern.
    assume(len(stretches) > 1 or cold >= 5)
    pauses, at = [], 0
    for busy, idle in stretches:
        pauses.append((at + busy, at + busy + idle))
        at += busy + idle
    made = Readings(
        minutes=at + 40,
        tps=lambda m: 0 if any(a <= m < b for a, b in pauses) else 150,
        latency=lambda m: 450 if any(b <= m < b + cold for _, b in pauses) else 40,
        cpu=constant(15),
        **read,
    )
    assert made.ids() == ["LLD132"]


def test_slow_after_nights_without_requests() -> None:
    made = Readings(
        minutes=4 * 1440,
        step=5,
        tps=lambda m: 0 if m % 1440 < 420 else 50,
        latency=lambda m: 500 if 420 <= m % 1440 < 435 else 40,
    )
    (finding,) = made.findings()
    assert finding.id == "LLD132"
    assert "after 4 of 4 pauses" in finding.evidence[0].text
    assert finding.confidence == "high"


# ---------------------------------------------------------------------------------------- growing


@_examples
@given(
    _read(0.08, 0.1, st.just({})),
    st.floats(4, 10),
    st.sampled_from(["line", "exponential", "late"]),
    st.sampled_from([(60, 1), (240, 1), (7 * 1440, 5)]),
)
def test_growing_whatever_the_shape(
    read: dict[str, Any], factor: float, shape: str, window: tuple[int, int]
) -> None:
    minutes, step = window

    def latency(m: int) -> float:
        part = m / minutes
        if shape == "exponential":
            return 40 * factor**part
        part = max(0.0, 1.6 * part - 0.6) if shape == "late" else part
        return 40 * (1 + (factor - 1) * part)

    made = Readings(minutes=minutes, step=step, latency=latency, **read)
    assert made.ids() == ["LLD133"]


def test_a_queue_behind_too_few_workers_keeps_its_cause() -> None:
    made = Readings(latency=lambda m: 40 * (1 + 4 * m / 60), in_flight=constant(200))
    measurements = made.measurements()
    assert made.ids() == ["LLD133"]
    object.__setattr__(
        measurements.variants[0], "environment", {"SAGEMAKER_MODEL_SERVER_WORKERS": "2"}
    )
    assert [finding.id for finding in walk(measurements)] == ["LLD111"]


# -------------------------------------------------------------------------------------- saw-teeth


@_examples
@given(_read(0.04, 0.05), st.integers(25, 90), st.integers(0, 90), st.integers(1, 4))
def test_saw_teeth(read: dict[str, Any], tooth: int, phase: int, gone: int) -> None:
    def since(m: int) -> int:
        return (m + phase) % tooth

    made = Readings(
        minutes=4 * tooth,
        memory=lambda m: 35 + 60 * since(m) / tooth,
        instances=lambda m: 8 - gone if since(m) < 4 else 8,
        latency=lambda m: 350 if since(m) < 7 or since(m) > 0.8 * tooth else 40,
        **read,
    )
    assert made.ids() == ["LLD134"]


# --------------------------------------------------------------------------------- lost instances


@_examples
@given(
    _read(0.08, 0.05),
    st.sampled_from([(2, 1), (3, 2), (6, 4), (8, 4), (9, 6), (16, 8)]),
    st.integers(15, 60),
    st.one_of(st.none(), st.integers(12, 30)),
)
def test_instances_lost_at_a_constant_load(
    read: dict[str, Any], fleet: tuple[int, int], at: int, back: int | None
) -> None:
    whole, left = fleet

    def gone(m: int) -> bool:
        return m >= at and (back is None or m < at + back)

    made = Readings(
        minutes=120,
        tps=constant(100 * whole),
        instances=lambda m: left if gone(m) else whole,
        cpu=lambda m: 97 if gone(m) else 55,
        latency=lambda m: 330 if gone(m) else 40,
        scaling=(left, 16, 7800.0),  # at least as many as are left: no other cause
        **read,
    )
    assert made.ids() == ["LLD135"]


def test_the_zone_that_was_lost_is_named() -> None:
    made = Readings(
        instances=lambda m: 4 if m >= 30 else 8,
        latency=lambda m: 330 if m >= 30 else 40,
        zones={
            "us-east-1a": lambda m: 1.0 if m >= 30 else 0.5,
            "us-east-1b": lambda m: 0.0 if m >= 30 else 0.5,
        },
    )
    (finding,) = made.findings()
    assert "with zone us-east-1b" in finding.evidence[0].text
    assert finding.confidence == "high"


# ---------------------------------------------------------------------------- one, or another cause


def _since(minute: int, before: float, after: float) -> PerMinute:
    return lambda m: before if m < minute else after


CASES = {
    # Full from minute 120 on: what the rhythm does not explain keeps its own cause.
    "a rhythm, and another fault": (
        ["LLD102", "LLD131"],
        Readings(
            minutes=180,
            tps=_since(120, 600, 1900),
            cpu=_since(120, 45, 97),
            latency=lambda m: 300 if m >= 120 else 400 if m % 10 == 0 else 40,
            scaling=(2, 8, 7800.0),
        ),
    ),
    "new instances after a pause": (
        ["LLD121"],
        Readings(
            minutes=120,
            tps=lambda m: 0 if 30 <= m < 60 else 500,
            instances=_since(62, 5, 8),
            latency=lambda m: 400 if 62 <= m < 68 else 40,
            activities=[scaled(62, 8)],
        ),
    ),
    "a stretch that CloudWatch lost is no pause": (
        ["LLD127"],
        Readings(
            minutes=120,
            gaps=((40, 60),),
            latency=lambda m: 400 if 60 <= m < 66 else 40,
            in_flight=constant(24),
        ),
    ),
    **{
        f"growing until a restart, {seed}": (
            ["LLD133"],
            Readings(
                minutes=120, seed=seed, latency=lambda m: 40 * (1 + 4 * m / 80) if m < 80 else 40
            ),
        )
        for seed in range(3)
    },
    # Latency follows the load: the tree has that cause.
    "a load that grows": (
        ["LLD111"],
        Readings(tps=lambda m: 200 + 20 * m, latency=lambda m: 40 + 4 * m),
    ),
    **{
        f"a step at {at} is no growth": (
            ["LLD127"],
            Readings(latency=_since(at, 40, 200), in_flight=constant(24)),
        )
        for at in (20, 30, 33, 41)
    },
    "saw-teeth of a week": (
        ["LLD134"],
        Readings(
            minutes=7 * 1440,
            step=5,
            memory=lambda m: 35 + 62 * ((m + 500) % 1440) / 1440,
            instances=lambda m: 4 if (m + 500) % 1440 < 15 else 8,
            latency=lambda m: 350 if not 20 <= (m + 500) % 1440 <= 1200 else 40,
        ),
    ),
    "saw-teeth without a restart are a collector at work": (
        [],
        Readings(minutes=240, memory=lambda m: 50 + 42 * (m % 30) / 30),
    ),
    "instances that scaling took away are not lost": (
        ["LLD104"],
        Readings(
            instances=_since(30, 8, 4),
            cpu=_since(30, 55, 97),
            latency=_since(30, 40, 330),
            activities=[scaled(30, 4, to_fewer=True)],
        ),
    ),
    "fewer instances under a rising load": (
        ["LLD104"],
        Readings(
            tps=_since(30, 600, 1600),
            instances=_since(30, 8, 6),
            cpu=_since(30, 55, 97),
            latency=_since(30, 40, 330),
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_a_pattern_and_what_has_another_cause(name: str) -> None:
    expected, made = CASES[name]
    assert sorted(made.ids()) == expected
