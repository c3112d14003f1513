"""Patterns over time: named in any form of theirs, and never on a healthy endpoint."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .readings import PerMinute, Readings, constant

_SEEDS = st.integers(0, 10_000)
#: What CloudWatch and the endpoint add: noise of each value, and datapoints that are missing.
_NOISE, _LOST = st.floats(0.0, 0.08), st.floats(0.0, 0.1)
#: The same fault seen by a percentile, or by the average alone.
_SEEN = st.sampled_from(
    [
        {"statistics": ("p50", "p90", "p99", "Average"), "limits": {"p99": 160.0}},
        {"statistics": ("p99",), "limits": {"p99": 160.0}},
        {"statistics": ("Average",), "limits": {"Average": 90.0}},
        {"statistics": ("p50", "p99"), "limits": {"p50": 80.0, "p99": 200.0}},
    ]
)
_examples = settings(max_examples=25, deadline=None)


# -------------------------------------------------------------------------------------- periodic


@_examples
@given(
    _SEEDS, _NOISE, _LOST, _SEEN, st.integers(2, 15), st.integers(0, 14), st.sampled_from([90, 240])
)
def test_periodic_whatever_the_period_and_phase(
    seed: int, noise: float, lost: float, seen: dict, period: int, phase: int, minutes: int
) -> None:
    made = Readings(
        minutes=minutes,
        latency=lambda m: 400 if (m + phase) % period == 0 else 40,
        seed=seed,
        noise=noise,
        lost=lost,
        **seen,
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


def test_a_rhythm_and_another_fault_are_two_findings() -> None:
    """Full from minute 120 on: what the rhythm does not explain keeps its own cause."""
    made = Readings(
        minutes=180,
        tps=lambda m: 600 if m < 120 else 1900,
        cpu=lambda m: 45 if m < 120 else 97,
        latency=lambda m: 300 if m >= 120 else 400 if m % 10 == 0 else 40,
        scaling=(2, 8, 7800.0),
    )
    assert set(made.ids()) == {"LLD102", "LLD131"}


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
    _SEEDS,
    _NOISE,
    st.floats(0.0, 0.05),
    _SEEN,
    st.lists(st.tuples(st.integers(25, 50), st.integers(8, 40)), min_size=1, max_size=4),
    st.integers(3, 8),
)
def test_slow_after_a_pause(
    seed: int, noise: float, lost: float, seen: dict, stretches: list[tuple[int, int]], cold: int
) -> None:
    pauses, at = [], 0
    for busy, idle in stretches:
        pauses.append((at + busy, at + busy + idle))
        at += busy + idle
    made = Readings(
        minutes=at + 40,
        tps=lambda m: 0 if any(a <= m < b for a, b in pauses) else 150,
        latency=lambda m: 450 if any(b <= m < b + cold for _, b in pauses) else 40,
        cpu=constant(15),
        seed=seed,
        noise=noise,
        lost=lost,
        **seen,
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


def test_new_instances_after_a_pause_are_the_cause() -> None:
    made = Readings(
        minutes=120,
        tps=lambda m: 0 if 30 <= m < 60 else 500,
        instances=lambda m: 5 if m < 62 else 8,
        latency=lambda m: 400 if 62 <= m < 68 else 40,
    )
    made.activities = [made.scaled(62, 8)]
    assert made.ids() == ["LLD121"]


def test_a_stretch_that_cloudwatch_lost_is_no_pause() -> None:
    made = Readings(
        minutes=120,
        gaps=((40, 60),),
        latency=lambda m: 400 if 60 <= m < 66 else 40,
        in_flight=constant(24),
    )
    assert made.ids() == ["LLD112"]


# ---------------------------------------------------------------------------------------- growing


@_examples
@given(
    _SEEDS,
    _NOISE,
    _LOST,
    st.floats(4, 10),
    st.sampled_from(["line", "exponential", "late"]),
    st.sampled_from([(60, 1), (240, 1), (7 * 1440, 5)]),
)
def test_growing_whatever_the_shape(
    seed: int, noise: float, lost: float, factor: float, shape: str, window: tuple[int, int]
) -> None:
    minutes, step = window

    def latency(m: int) -> float:
        part = m / minutes
        if shape == "exponential":
            return 40 * factor**part
        part = max(0.0, 1.6 * part - 0.6) if shape == "late" else part
        return 40 * (1 + (factor - 1) * part)

    made = Readings(minutes=minutes, step=step, latency=latency, seed=seed, noise=noise, lost=lost)
    assert made.ids() == ["LLD133"]


@pytest.mark.parametrize("seed", range(3))
def test_growing_until_a_restart(seed: int) -> None:
    made = Readings(
        minutes=120, seed=seed, latency=lambda m: 40 * (1 + 4 * m / 80) if m < 80 else 40
    )
    assert made.ids() == ["LLD133"]


def test_a_load_that_grows_is_no_growth() -> None:
    """Latency follows the load: the tree has that cause."""
    made = Readings(tps=lambda m: 200 + 20 * m, latency=lambda m: 40 + 4 * m)
    assert "LLD133" not in made.ids()


def test_a_step_is_no_growth() -> None:
    for at in (20, 30, 33, 41):
        made = Readings(latency=lambda m, at=at: 40 if m < at else 200, in_flight=constant(24))
        assert made.ids() == ["LLD112"]


def test_a_queue_behind_too_few_workers_keeps_its_cause() -> None:
    made = Readings(latency=lambda m: 40 * (1 + 4 * m / 60), in_flight=constant(200))
    measurements = made.measurements()
    assert made.ids() == ["LLD133"]
    object.__setattr__(
        measurements.variants[0], "environment", {"SAGEMAKER_MODEL_SERVER_WORKERS": "2"}
    )
    from low_latency_endpoint.operate.diagnose.tree import walk

    assert [finding.id for finding in walk(measurements)] == ["LLD111"]


# -------------------------------------------------------------------------------------- saw-teeth


@_examples
@given(
    _SEEDS,
    st.floats(0.0, 0.04),
    st.floats(0.0, 0.05),
    _SEEN,
    st.integers(25, 90),
    st.integers(0, 90),
    st.integers(1, 4),
)
def test_saw_teeth(
    seed: int, noise: float, lost: float, seen: dict, tooth: int, phase: int, gone: int
) -> None:
    def since(m: int) -> int:
        return (m + phase) % tooth

    made = Readings(
        minutes=4 * tooth,
        memory=lambda m: 35 + 60 * since(m) / tooth,
        instances=lambda m: 8 - gone if since(m) < 4 else 8,
        latency=lambda m: 350 if since(m) < 7 or since(m) > 0.8 * tooth else 40,
        seed=seed,
        noise=noise,
        lost=lost,
        **seen,
    )
    assert made.ids() == ["LLD134"]


def test_saw_teeth_of_a_week() -> None:
    made = Readings(
        minutes=7 * 1440,
        step=5,
        memory=lambda m: 35 + 62 * ((m + 500) % 1440) / 1440,
        instances=lambda m: 4 if (m + 500) % 1440 < 15 else 8,
        latency=lambda m: 350 if (m + 500) % 1440 < 20 or (m + 500) % 1440 > 1200 else 40,
    )
    assert made.ids() == ["LLD134"]


def test_saw_teeth_without_a_restart_are_a_collector_at_work() -> None:
    made = Readings(minutes=240, memory=lambda m: 50 + 42 * (m % 30) / 30)
    assert made.ids() == []


# --------------------------------------------------------------------------------- lost instances


@_examples
@given(
    _SEEDS,
    _NOISE,
    st.floats(0.0, 0.05),
    _SEEN,
    st.sampled_from([(2, 1), (3, 2), (6, 4), (8, 4), (9, 6), (16, 8)]),
    st.integers(15, 60),
    st.one_of(st.none(), st.integers(12, 30)),
)
def test_instances_lost_at_a_constant_load(
    seed: int,
    noise: float,
    lost: float,
    seen: dict,
    fleet: tuple[int, int],
    at: int,
    back: int | None,
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
        seed=seed,
        noise=noise,
        lost=lost,
        **seen,
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


def test_instances_that_scaling_took_away_are_not_lost() -> None:
    made = Readings(
        instances=lambda m: 4 if m >= 30 else 8,
        cpu=lambda m: 97 if m >= 30 else 55,
        latency=lambda m: 330 if m >= 30 else 40,
    )
    made.activities = [made.scaled(30, 4, to_fewer=True)]
    assert "LLD135" not in made.ids()


def test_fewer_instances_under_a_rising_load_are_not_the_cause() -> None:
    made = Readings(
        tps=lambda m: 600 if m < 30 else 1600,
        instances=lambda m: 6 if m >= 30 else 8,
        cpu=lambda m: 97 if m >= 30 else 55,
        latency=lambda m: 330 if m >= 30 else 40,
    )
    assert "LLD135" not in made.ids()


# ---------------------------------------------------------------------------------------- healthy


def _day(m: float) -> float:
    return 600 - 400 * math.cos(2 * math.pi * m / 1440)


def _scaled(made: Readings, *changes: tuple[int, int, bool]) -> Readings:
    made.activities = [made.scaled(at, to, to_fewer=fewer) for at, to, fewer in changes]
    return made


def _bad_minutes(seed: int, minutes: int, share: float) -> PerMinute:
    chosen = random.Random(seed)
    bad = {m for m in range(minutes) if chosen.random() < share}
    return lambda m: 400 if m in bad else 40


def _wandering(seed: int) -> PerMinute:
    """Latency that wanders: each minute resembles the last, as the mix of inputs does."""
    chosen, at, found = random.Random(seed), 0.0, []
    for _ in range(720):
        at = 0.95 * at + chosen.gauss(0, 0.06)
        found.append(min(40 * math.exp(at), 70))
    return lambda m: found[m]


HEALTHY: dict[str, Callable[[int], Readings]] = {
    "the curve of a day": lambda s: Readings(
        minutes=1440,
        tps=_day,
        instances=lambda m: max(2, math.ceil(_day(m - 5) * 60 / 6000)),
        latency=lambda m: 35 + _day(m) / 50,
        noise=0.1,
    ),
    "a week of days": lambda s: Readings(
        minutes=7 * 1440, step=5, tps=_day, latency=lambda m: 30 + _day(m) / 50
    ),
    "scale-outs": lambda s: _scaled(
        Readings(
            minutes=120,
            tps=lambda m: 400 + 5 * m,
            instances=lambda m: 4 if m < 40 else 6 if m < 80 else 8,
        ),
        (40, 6, False),
        (80, 8, False),
    ),
    "a scale-in of half": lambda s: _scaled(
        Readings(minutes=120, tps=lambda m: 900 - 3 * m, instances=lambda m: 8 if m < 60 else 4),
        (60, 4, True),
    ),
    "nights without requests": lambda s: Readings(
        minutes=2880, tps=lambda m: 0 if m % 1440 < 360 else 100
    ),
    "noise": lambda s: Readings(minutes=240, latency=constant(45), noise=0.12),
    "one bad minute": lambda s: Readings(latency=lambda m: 900 if m == 20 + s else 40),
    "bad minutes by chance": lambda s: Readings(minutes=360, latency=_bad_minutes(s, 360, 0.03)),
    "a deployment": lambda s: Readings(
        minutes=120,
        deployed=40,
        instances=lambda m: 16 if 40 <= m < 50 else 8,
        memory=lambda m: 86 if m < 42 else 30,
        latency=lambda m: 70 if 41 <= m < 44 else 40,
    ),
    "a weekly job with its own load": lambda s: Readings(
        minutes=7 * 1440,
        step=5,
        tps=lambda m: 900 if 3000 <= m < 3120 else 400,
        latency=lambda m: 65 if 3000 <= m < 3120 else 40,
        memory=lambda m: 88 if 3000 <= m < 3120 else 40,
    ),
    "few requests": lambda s: Readings(
        minutes=240, tps=constant(0.05), cpu=constant(2), latency=_bad_minutes(s, 240, 0.08)
    ),
    "a request every third minute": lambda s: Readings(
        minutes=180, tps=lambda m: 1 if m % 3 == 0 else 0, cpu=constant(2)
    ),
    "warming up from the start": lambda s: Readings(latency=lambda m: 70 - min(m, 30)),
    "a creep that stays far below": lambda s: Readings(minutes=240, latency=lambda m: 10 + m / 12),
    "batches at each hour": lambda s: Readings(
        minutes=360,
        tps=lambda m: 1000 if m % 60 < 3 else 600,
        latency=lambda m: 65 if m % 60 < 3 else 40,
    ),
    "datapoints missing": lambda s: Readings(minutes=180, lost=0.25, gaps=((50, 70),)),
    "latency that wanders": lambda s: Readings(minutes=720, latency=_wandering(s), noise=0.02),
    "no limit stated": lambda s: Readings(minutes=240, limits={}, noise=0.2),
    "half by hand, and enough": lambda s: Readings(
        tps=constant(300), cpu=constant(50), instances=lambda m: 4 if m > 30 else 8
    ),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", HEALTHY)
def test_silent_on_a_healthy_endpoint(name: str, seed: int) -> None:
    made = HEALTHY[name](seed)
    made.seed = seed
    assert [(f.id, [e.text for e in f.evidence]) for f in made.findings()] == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.01, 3.0, 600.0]),  # requests a second
            st.sampled_from([0.0, 0.5, 40.0, 79.0, 81.0, 4000.0]),  # median in ms
            st.integers(1, 9),  # instances
            st.sampled_from([0.0, 50.0, 99.0]),  # CPU
            st.sampled_from([0.0, 35.0, 97.0]),  # memory
        ),
        min_size=1,
        max_size=90,
    ),
    st.sampled_from([1, 5]),
    st.sampled_from([{}, {"p99": 160.0}, {"Average": 0.1, "Maximum": 100.0}]),
    st.floats(0, 0.5),
)
def test_any_minutes_can_be_looked_at(
    minutes: list[tuple[float, float, int, float, float]],
    step: int,
    limits: dict[str, float],
    lost: float,
) -> None:
    """Whatever CloudWatch has: an answer, each with evidence, and each finding once."""
    made = Readings(
        minutes=len(minutes),
        step=step,
        tps=lambda m: minutes[m][0],
        latency=lambda m: minutes[m][1],
        instances=lambda m: minutes[m][2],
        cpu=lambda m: minutes[m][3],
        memory=lambda m: minutes[m][4],
        limits=limits,
        lost=lost,
        noise=0.0,
    )
    found = made.findings()
    assert all(finding.evidence and (finding.changes or finding.besides) for finding in found)
    names = [finding.id for finding in found if finding.id != "LLD135"]
    assert len(names) == len(set(names)), "only losses come more than once"
