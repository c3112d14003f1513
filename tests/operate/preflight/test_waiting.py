"""``preflight --wait``: an endpoint that is being scaled is waited for, and nothing else is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from low_latency_endpoint.operate.preflight.update_checks import wait_for_endpoints
from tests.fake_aws import REFUSED, REGION, FakeAws, merged
from tests.operate.preflight.cases import stack
from tests.operate.preflight.world import DEPLOYED, WORLD, settings_with


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def waited(aws: Mapping[str, Any], seconds: float) -> tuple[float, list[str]]:
    clock, told = Clock(), []
    wait_for_endpoints(
        settings_with({}),
        FakeAws(merged(WORLD, aws)),
        REGION,
        seconds=seconds,
        on_wait=told.append,
        sleep=clock.sleep,
        clock=lambda: clock.now,
    )
    return clock.now, told


def updating_for(answers: int, status: str = "Updating") -> dict[str, Any]:
    """An endpoint that is InService after so many answers."""
    left = [answers]

    def describe(params: Mapping[str, Any]) -> Any:
        left[0] -= 1
        now = status if left[0] >= 0 else "InService"
        return {**DEPLOYED["sagemaker.DescribeEndpoint"], "EndpointStatus": now}

    return merged(DEPLOYED, {"sagemaker.DescribeEndpoint": describe})


@pytest.mark.parametrize("status", ["Updating", "SystemUpdating"])
def test_a_scaling_action_is_waited_for_and_told_once(status: str) -> None:
    seconds, told = waited(updating_for(4, status), 600)
    assert 0 < seconds < 600
    assert told == [f"sentiment is {status}"]


def test_the_wait_ends_in_time_and_leaves_the_rest_to_the_check() -> None:
    seconds, _ = waited(updating_for(10_000), 100)
    assert seconds == 100


@pytest.mark.parametrize(
    "aws",
    [
        pytest.param({}, id="no stack"),
        pytest.param(DEPLOYED, id="in service"),
        pytest.param(updating_for(10_000, "Failed"), id="failed: time does not fix it"),
        pytest.param(
            updating_for(10_000) | stack("UPDATE_IN_PROGRESS"), id="another deployment runs"
        ),
        pytest.param(merged(DEPLOYED, {"sagemaker.DescribeEndpoint": REFUSED}), id="unreadable"),
    ],
)
def test_nothing_else_is_waited_for(aws: dict[str, Any]) -> None:
    assert waited(aws, 600) == (0, [])
