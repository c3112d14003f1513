"""What simulated fleets cost, against hand calculations; and two ways to a day's fleet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.cli.simulate_report import SimulatedCost
from low_latency_endpoint.facts.prices import Price
from low_latency_endpoint.plan.billed_items import BilledItem
from low_latency_endpoint.plan.hourly_cost import EndpointCost, StackCost
from low_latency_endpoint.settings import fleets_along, load_settings
from low_latency_endpoint.simulate import shape

SHIPPED = str(Path(__file__).parents[1] / "sentiment.yaml")
QUICK = ("--replications", "2", "--requests", "2000")
PRICED = ("--price", "ml.m5.12xlarge=3", "--service-time", "20ms")


def answer(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["simulate", "--settings", SHIPPED, *arguments, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_steady_fleet() -> None:
    """8 x 3, and an interface endpoint in two zones at 0.01: 24.02 for 3.6 million an hour.

    The 40 bytes of the warm-up's payload make 0.144 GB of them, at 0.01 too.
    """
    found = answer(*PRICED, "--replications", "2", "--requests", "2000")
    assert found["cost"]["usd_per_hour"] == pytest.approx(24.02 + 0.00144)
    assert found["cost"]["usd_per_million_requests"] == pytest.approx(24.02 / 3.6, abs=1e-3)
    assert (
        "8 instances: 24.02 US dollars per hour, 6.67 for a million requests." in (found["answer"])
    )


def test_the_hour_has_what_the_million_has(tmp_path: Path) -> None:
    """A shadow's instances and the data of requests are in both: the hour is 3.6 of the million."""
    text = Path(SHIPPED).read_text()
    shadowed = tmp_path / "shadowed.yaml"
    shadowed.write_text(
        text + "    shadow: {name: candidate, share: 0.5}\n    payload_bytes: 10000\n"
    )
    done = CliRunner().invoke(
        app, ["simulate", "--settings", str(shadowed), *PRICED, "--json", *QUICK]
    )
    cost = json.loads(done.stdout)["cost"]
    # 8 + 4 instances at 3, two zones at 0.01, and 36 GB at 0.01
    assert cost["usd_per_hour"] == pytest.approx(36.38, abs=0.01)
    assert cost["usd_per_million_requests"] == pytest.approx(cost["usd_per_hour"] / 3.6, abs=1e-3)


def test_without_a_price_instance_hours() -> None:
    """8 hours for 3.6 million: 2.22 for one."""
    found = answer("--service-time", "20ms", "--replications", "2", "--requests", "2000")
    assert found["cost"]["usd_per_hour"] is None
    (said,) = [each for each in found["answer"] if "instance hours for a million" in each]
    assert "8 instances: 2.22 instance hours for a million requests" in said
    assert "low-latency prices reads it" in said


def over_time(name: str, settings: Path) -> tuple[dict[str, Any], list[str]]:
    arguments = ["simulate", "--settings", str(settings), "--price", "ml.m5.12xlarge=3"]
    arguments += ["--service-time", "400ms", "--traffic", name, "--replications", "2", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    return found["traffic"][name], found["answer"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings that ship with a twentieth of their traffic, so that a day is simulated soon."""
    text = Path(SHIPPED).read_text(encoding="utf-8")
    changed = text.replace("peak_tps: 1000", "peak_tps: 50")
    changed = changed.replace("tps_per_instance: 200", "tps_per_instance: 10")
    changed = changed.replace("rise_tps_per_minute: 10 ", "rise_tps_per_minute: 0.5 ")
    assert changed.count(": 50") == changed.count(": 0.5 ") == 1
    assert changed.count(": 10 ") + changed.count(": 10\n") == 1
    path = tmp_path_factory.mktemp("small") / "endpoint.yaml"
    path.write_text(changed, encoding="utf-8")
    return path


def test_over_time_what_is_paid_for_on_average(small: Path) -> None:
    one = shape("spike")
    run, said = over_time("spike", small)
    hour = 3 * run["instance_hours"]["mean"] / (one.seconds / 3600) + 0.02
    assert run["cost"]["usd_per_hour"] == pytest.approx(hour, abs=1e-3)
    requests = 50 * one.mean_share * 3600  # an hour
    assert run["cost"]["usd_per_million_requests"] == pytest.approx(hour / requests * 1e6, rel=1e-3)
    # A month can be told of a day, not of a spike.
    assert not any("a month of 730 hours" in each for each in said)


def test_the_plan_and_the_simulation_agree_on_a_day(small: Path) -> None:
    """Minute by minute by rule, and request by request with a controller: two implementations."""
    run, said = over_time("daily-wave", small)
    planned = fleets_along(load_settings(small), shape("daily-wave"))["sentiment"]
    assert planned is not None
    assert planned.mean == pytest.approx(run["instance_hours"]["mean"] / 24, rel=0.03)
    month = 730 * (3 * run["instance_hours"]["mean"] / 24 + 0.02)
    assert any(f"{month:,.0f} a month of 730 hours" in each for each in said)


def test_fleets_of_two_sizes() -> None:
    """2 at 3 with 0.02: 6.02 for 360,000 an hour, 16.72; 4: 12.02, on half the traffic 66.78."""
    fleet = EndpointCost(
        instance_type="t", at_least=1, at_first=1, at_most=1, in_an_update=2,
        price=Price(3.0, "yours"),
    )  # fmt: skip
    link = BilledItem(what="link", item="interface_endpoint", per_hour=2, price=Price(0.01, ""))
    cost = SimulatedCost(StackCost(endpoints={"one": fleet}, shared=(link,)), "one")
    for instances, tps, hour, million in ((2.0, 100.0, 6.02, 16.72), (4.0, 50.0, 12.02, 66.78)):
        found = cost.to_dict(instances, tps)
        assert found["usd_per_hour"] == pytest.approx(hour)
        assert found["usd_per_million_requests"] == pytest.approx(million, abs=0.005)
