"""The zone's name, the fallback to the Region, and the way back."""

from __future__ import annotations

import pytest

from low_latency_client.timing import ClientCounts
from low_latency_client.zone import ClientZone, ZonalRoute, zonal_url_for

VPCE = "https://vpce-0a1b-2c3d-{}.runtime.sagemaker.us-east-1.vpce.amazonaws.com"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def made() -> tuple[ZonalRoute, Clock, ClientCounts]:
    clock, counts = Clock(), ClientCounts()
    return ZonalRoute("https://zone", "https://region", counts, clock), clock, counts


def test_calls_go_to_the_zone_until_it_fails() -> None:
    route, _, counts = made()
    assert route.choose() == "https://zone"
    assert route.failed("https://zone") is True
    assert [route.choose() for _ in range(3)] == ["https://region"] * 3
    assert counts.failovers == 1
    assert not route.zone_is_open


def test_a_failure_of_the_region_closes_nothing() -> None:
    route, _, counts = made()
    assert route.failed("https://region") is False
    assert route.choose() == "https://zone"
    assert counts.failovers == 0


def test_after_the_pause_one_call_tries_and_the_others_stay_away() -> None:
    route, clock, counts = made()
    route.failed("https://zone")
    clock.now += 5.0
    assert [route.choose() for _ in range(3)] == [
        "https://zone",
        "https://region",
        "https://region",
    ]
    route.answered("https://zone")
    assert route.choose() == "https://zone"
    assert counts.recoveries == 1


def test_pauses_grow_to_a_minute() -> None:
    route, clock, _ = made()
    route.failed("https://zone")
    pauses = []
    for _ in range(6):
        start = clock.now
        while route.choose() == "https://region":
            clock.now += 0.5
        pauses.append(clock.now - start)
        route.failed("https://zone")
    assert pauses == [5, 10, 20, 40, 60, 60]


def test_many_failures_at_once_make_one_pause() -> None:
    route, clock, _ = made()
    for _ in range(50):  # all were under way when the zone failed
        route.failed("https://zone")
    clock.now += 5.0
    assert route.choose() == "https://zone"


def test_an_answer_of_the_region_does_not_open_the_zone() -> None:
    route, _, counts = made()
    route.failed("https://zone")
    route.answered("https://region")
    assert not route.zone_is_open
    assert counts.recoveries == 0


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        (ClientZone(zone_id="use1-az4"), "us-east-1a"),
        (ClientZone(name="us-east-1b"), "us-east-1b"),  # ECS: a name, while the keys are IDs
        (ClientZone(zone_id="use1-az9", name="us-east-1a"), "us-east-1a"),
        (ClientZone(name="us-east-1"), None),
        (ClientZone(name="us-east-1c"), None),
        (ClientZone(), None),
    ],
)
def test_the_zones_url(zone: ClientZone, expected: str | None) -> None:
    urls = {"use1-az4": VPCE.format("us-east-1a"), "use1-az6": VPCE.format("us-east-1b")}
    assert zonal_url_for(zone, urls) == (VPCE.format(expected) if expected else None)
