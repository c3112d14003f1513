"""Fargate's sizes against cfn-lint's table; prices with source."""

from __future__ import annotations

import json
from datetime import date

import pytest
from cfnlint.api import lint
from cfnlint.core import get_rules

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.load_test_fleet_rules import TASK_CPU, check_task_size
from low_latency_endpoint.facts.tables import rows

CPUS = [*TASK_CPU.values, 128, 3072, 65_536]
# In MiB: a fraction of a GiB, then around each limit.
GIBS = (1, 2, 3, 4, 5, 8, 9, 16, 17, 20, 30, 31, 32, 40, 60, 64, 120, 128, 244)
SIZES = [256, 512, 1536, *(1024 * each for each in GIBS)]


@pytest.fixture(scope="module")
def fargates() -> set[tuple[int, int]]:
    """The sizes that cfn-lint lets pass, of all in one template: loading its rules takes long."""
    tasks = {f"Task{cpu}x{size}": (cpu, size) for cpu in CPUS for size in SIZES}
    template = {
        "Resources": {
            name: {
                "Type": "AWS::ECS::TaskDefinition",
                "Properties": {
                    "Cpu": str(cpu),
                    "Memory": str(size),
                    "NetworkMode": "awsvpc",
                    "RequiresCompatibilities": ["FARGATE"],
                    "ContainerDefinitions": [{"Name": "one", "Image": "one:1"}],
                },
            }
            for name, (cpu, size) in tasks.items()
        }
    }
    found = lint(json.dumps(template), get_rules([], [], ["E"], {}, False), ["us-east-1"])
    return set(tasks.values()) - {tasks[str(match.path[1])] for match in found}


def ours_has(cpu: int, memory_mib: int) -> bool:
    try:
        check_task_size(cpu, memory_mib)
    except ConfigurationError:
        return False
    return True


@pytest.mark.parametrize("cpu", CPUS)
def test_sizes_are_fargates(cpu, fargates):
    assert [size for size in SIZES if ours_has(cpu, size)] == [
        size for size in SIZES if (cpu, size) in fargates
    ]


def test_the_table_tells_sizes_apart(fargates):
    assert (256, 512) in fargates
    assert (256, 8192) not in fargates
    assert not any(cpu in (128, 3072, 65_536) for cpu, _ in fargates)


def test_every_price_has_its_page():
    for row in rows("list_prices"):
        assert float(row["usd"]) > 0
        assert date.fromisoformat(row["read"]) <= date.today()
        assert row["region"]
        assert row["source"].startswith("https://aws.amazon.com/")
        assert row["unit"]
