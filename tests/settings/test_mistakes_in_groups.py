"""A mistake in a group of an endpoint is reported on its line, whatever other code reads the group."""

from __future__ import annotations

import json
from typing import Any

import pytest

from low_latency_endpoint.options.option import groups_in, options_of
from low_latency_endpoint.settings.endpoint import EndpointSettings
from tests.settings_files import mistakes

ENDPOINT = {
    "containers": [{"image": {"uri": "example/image:1"}}],
    "instance_type": "ml.m5.large",
    "latency": {"p99": "200ms"},
    "throughput": {"peak_tps": 1000, "tps_per_instance": 200},
}
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "variants": {"variants": {"random": {"routing": "random"}}},
    "shadow": {"shadow": {"name": "candidate"}},
    "pools": {
        "instance_pools": [
            {"instance_type": "ml.m5.large", "priority": 1, "tps_per_instance": 200},
            {"instance_type": "ml.m5.xlarge", "priority": 2, "tps_per_instance": 300},
        ]
    },
}
#: Groups of an endpoint that are a mapping of options; `variants` has names of its own.
GROUPS = {
    option.key: option.example
    for option in options_of(EndpointSettings)
    if groups_in(option.kind) and isinstance(option.example, dict) and option.key != "variants"
}


def file_with(endpoint: dict[str, Any]) -> tuple[str, dict[str, int]]:
    """A settings file with a setting of the endpoint on each line, and the line of each."""
    lines = ["client_zones: {ids: [use1-az1, use1-az2]}", "endpoints:", "  sentiment:"]
    numbers = {}
    for name, value in endpoint.items():
        lines.append(f"    {name}: {json.dumps(value)}")
        numbers[name] = len(lines)
    return "\n".join(lines) + "\n", numbers


def test_there_are_groups() -> None:
    assert {"deployment", "alarms", "warm_up", "throughput", "scaling"} <= set(GROUPS)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("mistake", ["only an unknown option", "an unknown option too", "a text"])
def test_the_line_of_the_group_is_named(group: str, shape: str, mistake: str) -> None:
    values = {
        "only an unknown option": {"strategy": "rolling"},
        "an unknown option too": {**GROUPS[group], "strategy": "rolling"},
        "a text": "rolling",
    }
    text, lines = file_with({**ENDPOINT, **SHAPES[shape], group: values[mistake]})
    reported = mistakes(text)
    assert {line for line, _ in reported} == {lines[group]}, [str(error) for _, error in reported]
    codes = [error.code for _, error in reported]
    assert mistake == "a text" or "LLE904" in codes, codes
