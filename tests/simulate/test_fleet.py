"""Outages, scaling and deployments at the same time: what the fleet may never do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.simulate import (
    Constant,
    OpenLoop,
    Rollout,
    Scenario,
    TargetTracking,
    ZoneOutage,
)
from low_latency_endpoint.simulate.compilation import loops
from low_latency_endpoint.simulate.core import IN_SYSTEM
from low_latency_endpoint.simulate.replication import RunLength, _Run

SECONDS = 10_800.0


def watched(scenario: Scenario, seconds: float = SECONDS, window: float | None = None) -> _Run:
    """Run a scenario, and look at its fleet whenever something has happened to it."""
    run = _Run(scenario, RunLength(None, seconds, 0.0, window), loops(), 1, 0)
    control, world, act = run.control, run.world, run.control.act
    most = scenario.scaling.maximum if scenario.scaling else scenario.instances

    def looked_at() -> None:
        act()
        for place, instance in world.fleet.items():
            assert instance.place == place
            assert 0 <= instance.zone < scenario.zones
        assert 0 <= control.desired <= most
        assert len(world.serving) <= most
        deploying = control.updating and scenario.deployment
        starting = len(world.in_phase("starting"))
        assert len(world.serving) + starting <= (2 if deploying else 1) * most
        assert 0 <= control.paid_instances <= 2 * most + len(world.in_phase("draining"))

    control.act = looked_at  # type: ignore[method-assign]
    run.found = run.run()  # type: ignore[attr-defined]
    return run


def ends_whole(run: _Run) -> None:
    world, control = run.world, run.control
    assert not control.updating
    assert len(world.serving) == control.desired
    assert len(world.in_phase("serving")) == control.desired  # none that is dead
    assert world.in_phase("starting") == []
    # Old instances with a queue too long for the time left are still at it, and paid for.
    finishing = [
        instance for instance in world.in_phase("draining") if world.has_requests(instance)
    ]
    assert control.paid_instances == control.desired + len(finishing)


times = st.integers(0, 1500).map(float)
delays = st.sampled_from([0.0, 10.0, 70.0, 400.0])


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    instances = draw(st.integers(1, 6))
    zones = draw(st.integers(1, 3))
    scaling = deployment = None
    if draw(st.booleans()):
        scaling = TargetTracking(
            60.0,
            draw(st.integers(1, instances)),
            draw(st.integers(instances, 10)),
            scale_out_cooldown=60.0,
            scale_in_cooldown=60.0,
            in_datapoints=3,
            instance_seconds=draw(delays),
        )
        if draw(st.booleans()):
            scaling = replace(scaling, metric="concurrency", target=4.0)
    if draw(st.booleans()):
        deployment = Rollout(
            at=draw(times),
            kind=draw(st.sampled_from(["all_at_once", "canary", "linear", "rolling"])),
            step_share=draw(st.sampled_from([0.1, 0.3, 0.5])),
            wait_seconds=draw(delays),
            bake_seconds=draw(delays),
            instance_seconds=draw(delays),
        )
    faults: list[ZoneOutage] = draw(
        st.lists(
            st.builds(
                ZoneOutage,
                at=times,
                zone=st.integers(0, zones - 1),
                detection_seconds=delays,
                replacement_seconds=delays,
            ),
            max_size=3,
        )
    )
    return Scenario(
        service=Constant(draw(st.sampled_from([0.01, 30.0]))),
        concurrency=8,
        traffic=OpenLoop(draw(st.sampled_from([0.1, 1.0, 3.0])), poisson=False),
        instances=instances,
        zones=zones,
        scaling=scaling,
        deployment=deployment,
        faults=tuple(faults),
        routing=draw(st.sampled_from(["RANDOM", "LEAST_OUTSTANDING_REQUESTS"])),
    )


@settings(max_examples=150)
@given(scenarios())
def test_a_fleet_keeps_its_bounds_and_ends_at_what_is_desired(scenario: Scenario) -> None:
    run = watched(scenario)
    ends_whole(run)
    found = run.found  # type: ignore[attr-defined]
    assert found.littles_law < 1e-9
    assert found.entered == found.requests + found.failed + int(run.world.state[IN_SYSTEM])
    if scenario.scaling is None:
        assert run.control.desired == scenario.instances


def base(**changes: object) -> Scenario:
    return Scenario(
        **{
            "service": Constant(0.01),
            "traffic": OpenLoop(8.0, poisson=False),
            "instances": 2,
            **changes,
        }
    )  # type: ignore[arg-type]


def test_scaling_ends_at_what_the_load_needs() -> None:
    """8 requests a second at 60 a minute each need 8 of at most 10."""
    run = watched(base(zones=2, scaling=TargetTracking(60.0, 2, 10), faults=(ZoneOutage(400.0),)))
    ends_whole(run)
    assert run.control.desired == 8


def test_instances_that_start_in_a_lost_zone_die_too() -> None:
    """Scaling out starts six at 240 s, three in each zone; the first zone is lost at 400 s."""
    run = watched(
        base(zones=2, scaling=TargetTracking(60.0, 2, 10), faults=(ZoneOutage(at=400.0),)),
        900.0,
        60.0,
    )
    lines = run.found.timeline  # type: ignore[attr-defined]
    assert [line.serving for line in lines[5:12]] == [2, 1, 1, 4, 4, 4, 8]
    assert {instance.zone for instance in run.world.serving} == {1}


def test_scaling_in_gives_up_replacements_first() -> None:
    """Two of eight die at 955 s; the load needs four, which is seen at 960 s."""
    run = watched(
        Scenario(
            service=Constant(0.01),
            traffic=OpenLoop(4.0, poisson=False),
            instances=8,
            scaling=TargetTracking(60.0, 2, 10),
            zones=4,
            faults=(ZoneOutage(at=955.0, detection_seconds=1.0),),
        ),
        1800.0,
        60.0,
    )
    ends_whole(run)
    assert run.control.desired == 4
    assert max(line.serving for line in run.found.timeline[16:]) == 4  # type: ignore[attr-defined]


def test_an_instance_that_drains_is_paid_for_until_its_last_request() -> None:
    """Requests of 30 s come each second from 1 s on; eight are worked on at once.

    At 10 s a new instance takes the traffic. The old one has got those of 1 to 10 s: eight end 30 s
    after they came, the ones of 9 and 10 s begin at 31 and 32 s, and the last of them ends at 62 s.
    """
    scenario = Scenario(
        service=Constant(30.0),
        traffic=OpenLoop(1.0, poisson=False),
        concurrency=8,
        deployment=Rollout(
            at=0.0, kind="all_at_once", wait_seconds=0.0, bake_seconds=0.0, instance_seconds=10.0
        ),
    )
    run = watched(scenario, 100.0).found  # type: ignore[attr-defined]
    assert run.instance_hours * 3600 == pytest.approx(62 + 100)


def test_a_dead_instance_does_not_work() -> None:
    """Its requests wait until the router learns of it at 30 s, and nobody works on them."""
    scenario = Scenario(
        service=Constant(5.0),
        traffic=OpenLoop(1.0, poisson=False),
        concurrency=64,
        faults=(ZoneOutage(at=10.5, detection_seconds=19.5, replacement_seconds=1000.0),),
    )
    run = watched(scenario, 30.0).found  # type: ignore[attr-defined]
    # Requests come at 1, 2, ... 10 s. Of the first five each is worked on for 5 s, of the others
    # until 10.5 s: those of 6 to 10 s for 4.5, 3.5, 2.5, 1.5 and 0.5 s.
    assert run.utilisation * 64 * run.instance_hours * 3600 == pytest.approx(5 * 5 + 12.5)
