"""Scaling, outages and deployments, against what can be counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.simulate import (
    ArrivalTrace,
    ClosedLoop,
    Constant,
    Empirical,
    Exponential,
    Lognormal,
    OpenLoop,
    Rollout,
    Scenario,
    Shape,
    ShapedLoop,
    TargetTracking,
    ZoneOutage,
    shape,
    shapes,
    simulate,
)

LEAST = "LEAST_OUTSTANDING_REQUESTS"
SPREAD = {"replications": 2, "seed": 3}


def even(rate: float, **changes: Any) -> Scenario:
    """Requests of 10 ms at equal gaps, by default on two instances."""
    parts = {"service": Constant(0.01), "traffic": OpenLoop(rate, poisson=False), "instances": 2}
    return Scenario(**{**parts, **changes})


def timeline(scenario: Scenario, seconds: float, window: float = 60.0):
    found = simulate(scenario, seconds=seconds, window=window, discard=0.0, **SPREAD)
    for run in found.replications:
        assert run.littles_law < 1e-9
        assert sum(line.requests for line in run.timeline) == run.requests
    return found.replications[0]


# --- scaling -----------------------------------------------------------------------------------


def policy(**changes: float) -> TargetTracking:
    return TargetTracking(**{"target": 60.0, "minimum": 2, "maximum": 10, **changes})


def test_scaling_out_takes_three_minutes_a_delay_and_a_start() -> None:
    """4 requests a second on 2 instances: 120 per instance and minute, twice the target."""
    run = timeline(even(4.0, scaling=policy()), 1200.0)
    serving = [line.serving for line in run.timeline]
    launched = [line.launched for line in run.timeline]
    assert launched[:3] == [2, 2, 2]  # up to 180 s: three values, the third not yet seen
    assert launched[3] == 4  # seen at 240 s
    assert serving[:8] == [2] * 8  # 300 s to start, in service from 540 s on
    assert serving[8:] == [4] * 12  # and at 60 per instance there it stays
    assert run.instance_hours == pytest.approx((2 * 1200 + 2 * (1200 - 240)) / 3600)


def test_scaling_in_takes_fifteen_minutes_below_nine_tenths() -> None:
    run = timeline(even(4.0, instances=8, scaling=policy()), 1800.0)
    serving = [line.serving for line in run.timeline]
    assert serving[14] == 8  # 900 s: the fifteenth value is seen at 960 s
    assert serving[16:] == [4] * 14


def test_taking_instances_away_takes_time_and_money() -> None:
    """Seen at 960 s, 120 s of update: four leave at once, and are paid for until 1,080 s."""
    run = timeline(even(4.0, instances=8, scaling=policy(scale_in_seconds=120.0)), 1800.0)
    assert [line.serving for line in run.timeline][15:] == [4] * 15
    assert run.instance_hours == pytest.approx((8 * 1080 + 4 * (1800 - 1080)) / 3600)


def test_scaling_in_keeps_what_the_busiest_of_the_quiet_minutes_needs() -> None:
    """4 and then 2 requests a second: four instances stay until 15 minutes have needed only two."""
    levels = ((600.0, 1.0), (2400.0, 0.5))
    run = timeline(
        Scenario(
            service=Constant(0.01),
            traffic=ShapedLoop(4.0, Shape("less", "", levels), poisson=False),
            instances=8,
            scaling=policy(),
        ),
        2400.0,
    )
    serving = [line.serving for line in run.timeline]
    assert (serving[14], serving[17], serving[24], serving[-1]) == (8, 4, 4, 2)


def test_nothing_scales_out_while_instances_are_taken_away() -> None:
    """A step at 965 s, right after the fleet was halved: seen by 1,200 s, and acted on only when
    the endpoint is in service again."""

    def launched(scale_in_seconds: float) -> float:
        levels = ((965.0, 0.1), (4000.0, 1.0))
        run = timeline(
            Scenario(
                service=Constant(0.01),
                traffic=ShapedLoop(40.0, Shape("step", "", levels), poisson=False),
                instances=8,
                scaling=policy(maximum=80, scale_in_seconds=scale_in_seconds),
            ),
            3000.0,
        )
        return next(line.end for line in run.timeline if line.launched > 8)

    # Minutes that end at 1,020, 1,080 and 1,140 s are above the target; the last is seen at 1,200.
    assert launched(120.0) == 1200.0
    assert launched(600.0) == 960.0 + 600.0  # with the value that is seen in that second


def rising(cooldown: float, levels: Sequence[float]) -> list[int]:
    ends = (300.0, 900.0, 3000.0)
    shape = Shape("rise", "", tuple(zip(ends, levels, strict=True)))
    run = timeline(
        Scenario(
            service=Constant(0.001),
            traffic=ShapedLoop(40.0, shape, poisson=False),
            instances=10,
            scaling=policy(maximum=80, instance_seconds=30.0, scale_out_cooldown=cooldown),
        ),
        3000.0,
    )
    return [line.serving for line in run.timeline]


def test_a_larger_scale_out_does_not_wait_for_the_cooldown() -> None:
    """AWS: no increase "unless either a larger scale out is triggered or the cooldown ends"."""
    serving = rising(900.0, levels=(0.25, 0.5, 1.0))
    # 20 a second from 300 s on: seen at 540 s, 30 s to start. All from 900 s on: seen at 1,140 s.
    assert serving[8:10] == [10, 20]
    assert serving[18:20] == [20, 40]  # 20 more, after 10


def test_a_scale_out_that_is_not_larger_waits_for_the_cooldown() -> None:
    """Ten more at 540 s, eight more at 1,140 s; the first serve at 570 s, and the cooldown is 900 s."""
    levels = (0.25, 0.5, 0.7)
    assert rising(60.0, levels=levels)[19] >= 28
    slow = rising(900.0, levels=levels)
    assert set(slow[9:24]) == {20}
    assert slow[25] >= 28  # decided at 1,500 s


def test_the_concurrency_metric_is_of_the_busiest_instance() -> None:
    """Three in flight at either instance, and a target of two: a third instance."""
    run = timeline(
        even(
            6.0,
            service=Constant(1.0),
            concurrency=10,
            routing=LEAST,
            scaling=TargetTracking.on_concurrency(2.0, 2, 3, instance_seconds=30.0),
        ),
        600.0,
    )
    assert run.timeline[-1].serving == 3


# --- outages ----------------------------------------------------------------------------------


def test_requests_on_a_dead_instance_fail_and_the_others_go_on() -> None:
    """Ten a second on two instances, one dead for ten seconds unseen: half of 100 fail."""
    run = timeline(
        even(
            10.0,
            zones=2,
            faults=(ZoneOutage(at=100.05, detection_seconds=10.0, replacement_seconds=60.0),),
        ),
        300.0,
        window=10.0,
    )
    assert run.failed == pytest.approx(50, abs=20)
    assert [line.serving for line in run.timeline][9:19] == [2, 1, 1, 1, 1, 1, 1, 1, 2, 2]
    assert 0 <= run.entered - run.requests - run.failed <= 1  # one may still be at work


def test_least_outstanding_keeps_away_from_an_instance_that_hangs() -> None:
    def failed(routing: str) -> int:
        return timeline(
            even(10.0, routing=routing, zones=2, faults=(ZoneOutage(at=100.05),)), 200.0
        ).failed

    assert failed(LEAST) <= 2 < 20 < failed("RANDOM")


def test_when_nobody_serves_calls_fail_and_users_come_back() -> None:
    run = timeline(
        Scenario(
            service=Constant(0.01),
            traffic=ClosedLoop(3),
            faults=(ZoneOutage(at=50.0, detection_seconds=1.0, replacement_seconds=40.0),),
        ),
        200.0,
        window=10.0,
    )
    lines = run.timeline
    assert [line.requests for line in lines[6:9]] == [0, 0, 0]
    assert [line.failed for line in lines[6:9]] == [30, 30, 30]  # 3 users, every second
    assert lines[-1].requests == pytest.approx(1000, abs=2)


# --- time over the target ----------------------------------------------------------------------


def overloaded(target: float | None = 1.0, **options: object):
    """One instance that serves one a second, and two a second from 600 s to 900 s."""
    levels = ((600.0, 0.25), (900.0, 1.0), (2400.0, 0.25))
    return simulate(
        Scenario(
            service=Constant(1.0),
            latency_target=target,
            traffic=ShapedLoop(2.0, Shape("jam", "", levels), poisson=False),
        ),
        **{**SPREAD, **options},
    )


def test_time_over_target_is_counted_over_all_replications() -> None:
    """300 wait at 900 s, and half a request a second is left over for them: gone at 1500 s."""
    over = overloaded(target=1.5).time_over_target
    assert over
    assert over.mean == pytest.approx(900, abs=60)
    assert over.half_width == 0  # nothing is left to chance
    by_chance = simulate(
        Scenario(service=Exponential(0.5), traffic=OpenLoop(1.0), latency_target=2.0),
        seconds=7200.0,
        window=60.0,
        replications=6,
    )
    over = by_chance.time_over_target
    assert over
    seconds = [run.seconds_over_target for run in by_chance.replications]
    assert len(set(seconds)) > 1
    assert over.half_width > 0
    assert min(seconds) <= over.mean <= max(seconds)


def test_a_minute_in_which_calls_fail_is_over_the_target() -> None:
    found = simulate(
        even(
            10.0,
            instances=1,
            latency_target=1.0,
            faults=(ZoneOutage(at=100.0, replacement_seconds=200.0),),
        ),
        seconds=600.0,
        window=60.0,
        discard=0.0,
        **SPREAD,
    )
    over = found.time_over_target
    assert over
    assert over.mean == 300  # of the minutes from 60 s to 360 s


def test_no_target_or_no_timeline_is_no_time() -> None:
    assert overloaded(target=None).time_over_target is None
    assert (
        simulate(QUIET.with_(latency_target=1.0), requests=1000, replications=2).time_over_target
        is None
    )


def test_data_hold_the_timeline_and_the_time_over_target() -> None:
    found = overloaded()
    data = found.to_dict()
    assert data["time_over_target_seconds"]["mean"] == found.time_over_target.mean
    lines, runs = data["timeline"], [run.timeline for run in found.replications]
    assert [line["end_seconds"] for line in lines] == [60.0 * minute for minute in range(1, 41)]
    for at, line in enumerate(lines):
        for name in ("requests", "failed", "serving", "launched", "slow"):
            assert line[name] == sum(getattr(run[at], name) for run in runs) / len(runs)
        assert line["p99_ms"] == pytest.approx(500 * sum(run[at].p99 for run in runs))
    assert simulate(QUIET, requests=1000, replications=2).to_dict()["timeline"] == []


# --- deployments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "share", "extra", "ready"),
    [
        ("all_at_once", 0.5, 4 * (300 + 60), 300),
        ("canary", 0.25, 4 * (300 + 120 + 60), 420),
        ("linear", 0.5, 4 * (300 + 120 + 60), 420),
        ("rolling", 0.25, 4 * 300, 4 * 300 + 3 * 120),
    ],
)
def test_a_deployment_costs_what_it_holds_twice(
    kind: str, share: float, extra: float, ready: float
) -> None:
    plan = Rollout(at=600.0, kind=kind, step_share=share, wait_seconds=120.0, bake_seconds=60.0)
    run = timeline(even(4.0, instances=4, deployment=plan), 3600.0)
    assert run.failed == 0
    assert {line.serving for line in run.timeline} == {4}  # one in, one out, at the same time
    # The old ones finish the requests that they are at, of some hundredths of a second.
    assert run.instance_hours * 3600 == pytest.approx(4 * 3600 + extra, abs=0.2)
    launched = [line.launched for line in run.timeline]
    assert launched[int((600 + ready + 60) / 60) + 1] == 4


def test_scaling_stands_still_during_a_deployment() -> None:
    run = timeline(
        even(4.0, scaling=policy(), deployment=Rollout(at=100.0, instance_seconds=600.0)), 2400.0
    )
    serving = [line.serving for line in run.timeline]
    assert serving[:16] == [2] * 16  # without it four would serve from 540 s on
    assert serving[-1] == 4


# --- shapes and errors -------------------------------------------------------------------------


def test_a_shape_sends_its_requests() -> None:
    for one in shapes().values():
        assert max(share for _, share in one.levels) == 1.0
    spike = shape("spike")
    assert spike.share_at(1000) == pytest.approx(10 * spike.share_at(100))
    run = timeline(
        Scenario(service=Constant(0.0001), traffic=ShapedLoop(20.0, spike, poisson=False)),
        spike.seconds,
    )
    assert run.requests == pytest.approx(20 * spike.mean_share * spike.seconds, rel=1e-3)


def test_a_trace_arrives_when_it_says() -> None:
    run = timeline(Scenario(service=Constant(0.5), traffic=ArrivalTrace((1.0, 1.0, 61.0))), 120.0)
    assert [line.requests for line in run.timeline] == [2, 1]
    assert run.mean == pytest.approx((0.5 + 1.0 + 0.5) / 3)


QUIET = Scenario(service=Constant(0.01), traffic=OpenLoop(1.0))
ALONE = Scenario(service=Constant(1.0), traffic=ClosedLoop(1))
CROWDED = Scenario(service=Exponential(0.01), traffic=OpenLoop(30.0), concurrency=8, slope=3.0)


@pytest.mark.parametrize(
    ("code", "build"),
    [
        ("LLS101", lambda: Exponential(0.0)),
        ("LLS102", lambda: Lognormal(1.0, -1.0)),
        ("LLS103", lambda: QUIET.with_(instances=0)),
        ("LLS104", lambda: QUIET.with_(concurrency=0)),
        ("LLS105", lambda: QUIET.with_(slope=-0.1)),
        ("LLS106", lambda: OpenLoop(0.0)),
        ("LLS107", lambda: ClosedLoop(0)),
        ("LLS108", lambda: QUIET.with_(routing="FASTEST")),
        ("LLE621", lambda: TargetTracking(60.0, 5, 4)),
        ("LLS120", lambda: Empirical.of_samples([0.1])),
        ("LLS120", lambda: Empirical.of_quantiles({0.5: 1.0, 1.0: 2.0})),
        ("LLS120", lambda: Empirical.of_quantiles({"median": 1.0, 1.0: 2.0})),
        ("LLS121", lambda: ArrivalTrace((2.0, 1.0))),
        ("LLS122", lambda: shape("weekend")),
        ("LLS129", lambda: QUIET.with_(faults=(ZoneOutage(at=1.0, zone=1),))),
        ("LLS109", lambda: simulate(ALONE, replications=1)),
        ("LLS113", lambda: simulate(ALONE, requests=10)),
        ("LLS101", lambda: Scenario(service=Constant(0.0), traffic=OpenLoop(1.0))),
        ("LLS131", lambda: Shape("x", "", ())),
        ("LLS131", lambda: Shape("x", "", ((600.0, 0.0),))),
        ("LLS131", lambda: Shape("x", "", ((600.0, 1.0), (300.0, 0.5)))),
        ("LLS131", lambda: Shape("x", "", ((0.0, 1.0),))),
        ("LLS131", lambda: Shape("x", "", ((600.0, 1.0), (1200.0, -0.5)))),
        ("LLS111", lambda: Shape("x", "", ((600.0, 1.0), (-1.0, 0.5)))),
        ("LLS111", lambda: Shape("x", "", ((600.0, 1.0),), deploy_at=-1.0)),
        ("LLS118", lambda: TargetTracking(60.0, 2, 4, metric="latency")),
        ("LLS119", lambda: TargetTracking(60.0, 2, 4, period=0.0)),
        ("LLS117", lambda: simulate(QUIET, requests=1000, window=5.0)),
        ("LLS117", lambda: simulate(QUIET, seconds=100.0, window=-1.0)),
        ("LLS117", lambda: simulate(QUIET, seconds=100.0, window=0.0)),
        ("LLS117", lambda: simulate(QUIET, seconds=100.0, window=1e-9)),
        ("LLS115", lambda: simulate(QUIET, requests=100, confidence=99)),
        ("LLS115", lambda: simulate(QUIET, requests=100, confidence=1.0)),
        ("LLS116", lambda: simulate(QUIET, requests=100, replications=2).percentile(75)),
        ("LLS127", lambda: simulate(Scenario(service=Constant(1.0), traffic=OpenLoop(1.1)))),
        # Eight at once take 22 times as long as one: 36 a second, fewer than one by one.
        ("LLS127", lambda: simulate(CROWDED.with_(traffic=OpenLoop(60.0)))),
        ("LLS128", lambda: simulate(ALONE, discard=1.0)),
    ],
)
def test_mistakes_have_codes(code: str, build) -> None:
    with pytest.raises(ConfigurationError) as caught:
        build()
    assert caught.value.code == code


@pytest.mark.parametrize(
    "law",
    [
        Lognormal(0.2, 1.5),
        Empirical.of_quantiles({0.0: 0.1, 0.5: 0.2, 0.99: 0.9, 1.0: 2.0}),
        Constant(0.2),
    ],
    ids=["lognormal", "empirical", "constant"],
)
def test_a_law_has_the_mean_that_it_says(law) -> None:
    """One request at a time: the latency is the law."""
    found = simulate(Scenario(service=law, traffic=ClosedLoop(1)), requests=200_000, replications=4)
    plain = sum(run.mean for run in found.replications) / 4
    assert plain == pytest.approx(law.mean_seconds, rel=0.01)
