"""A throughput that stays as measured while what it was measured with changes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from low_latency_endpoint.change.comparison import review
from low_latency_endpoint.settings import parse_settings
from tests.plan.test_sizing_jobs import job

LOAD = {"peak_tps": 6, "tps_per_instance": 1.5}
CHAT = {"throughput": LOAD, "tokens": {"input": 3000, "output": 400}, "payload_bytes": 9000}


def gained(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The warnings of a comparison that ask for another load test."""
    settings = [parse_settings(yaml.safe_dump(of(each))) for each in (before, after)]
    found = review(*settings).warnings["gained"]
    return [text for _, text in found if text.endswith("Load-test again")]


def of(changes: dict[str, Any]) -> Any:
    return job(LOAD, **CHAT | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": {"input": 12000, "output": 400}},
        {"tokens": {"input": 3000, "output": 4000}},
        {"payload_bytes": 900_000},
        {"instance_type": "ml.g6e.4xlarge"},
    ],
)
def test_other_requests_or_another_type_were_not_measured(changes: dict[str, Any]) -> None:
    [text] = gained({}, changes)
    assert text.startswith(f"throughput.tps_per_instance stays 1.5 while {next(iter(changes))} ")
    measured_again = changes | {"throughput": LOAD | {"tps_per_instance": 1.2}}
    assert gained({}, measured_again) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({}, {"throughput": LOAD | {"peak_tps": 9}}),
        ({"tokens": None}, {}),  # stated for the first time: of the same requests
        ({}, {"latency": {"p99": "900ms"}}),
    ],
)
def test_what_decides_no_measurement_asks_for_none(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert gained(before, after) == []
