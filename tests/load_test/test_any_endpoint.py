"""A load test of an endpoint without a settings file: its answer is whole, and what it prints works."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.options.throughput import (
    HELD_SHARE,
    instances_at_peak,
    instances_with_a_zone_lost,
)

from .fake_account import FakeAws
from .fake_generator import FakeGenerator

ROOT = Path(__file__).resolve().parents[2]
SEARCH = (
    "load-test sentiment --find-limit --target p99=200ms --duration 20s --constant --payload {} "
    "--metrics-wait 0s --region us-east-1"
)
Searched = Callable[..., str]


def printed(said: str) -> list[str]:
    """The commands of this tool in what was said, without what is written in brackets behind."""
    line = re.sub(r"\([^)]*\)", "", " ".join(said.split()))
    return re.findall(r"low-latency [a-z-]+(?: --[a-z-]+ [^\s.,;`]+(?:\.\w+)?)*", line)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Searched:
    """Look for the limit of an endpoint of one instance, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "low_latency_endpoint.load_test.search.load_testing.open_clients",
        lambda profile, region: (FakeAws(instances=[1], scaled=False), region),
    )
    monkeypatch.setattr(
        "low_latency_endpoint.load_test.search.load_testing.GeneratorProcess.of_profile",
        lambda *given: FakeGenerator(),
    )

    def said(more: str = "") -> str:
        done = CliRunner().invoke(app, [*shlex.split(SEARCH), *shlex.split(more)])
        assert done.exit_code == 0, done.output
        return " ".join(done.output.split())

    return said


def test_the_peak_is_counted_without_a_settings_file(searched: Searched) -> None:
    said = searched("--peak-tps 1000 -o lim.json")
    (each,) = re.findall(r"([\d.]+) requests a second each: 1,000 a second are", said)
    tps = float(each)
    at_peak = instances_at_peak(1000, tps, 0.5, 1)
    two, three = (max(at_peak, instances_with_a_zone_lost(1000, tps, zones)) for zones in (2, 3))
    assert (
        f"1,000 a second are {at_peak} instances (factor 0.5, at which AWS starts), {two} if one of "
        f"two zones may be lost, {three} if one of three may; at least one per zone."
    ) in said
    assert printed(said) == []


def test_how_to_count_is_said_without_a_peak(searched: Searched) -> None:
    said = searched()
    (half, each) = re.findall(r"divided by ([\d.]+) \(([\d.]+) each, factor 0.5", said)[0]
    assert float(half) == pytest.approx(float(each) / 2, rel=1e-3)
    assert "--peak-tps counts them" in said
    assert printed(said) == []


@pytest.mark.parametrize("file", ["endpoint.yaml", "other.yaml"])
def test_the_plan_is_named_where_a_settings_file_is(searched: Searched, file: str) -> None:
    """As it has to be called there."""
    Path(file).write_text((ROOT / "endpoint.yaml").read_text("utf-8"), "utf-8")
    Path("body.json").write_text("{}")
    used = "" if file == "endpoint.yaml" else f"--settings {file}"
    (command,) = printed(searched(f"-o lim.json {used}"))
    assert "with -o" not in command
    assert command == " ".join(f"low-latency plan {used} --from-load-test lim.json".split())
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, f"{done.output} {done.exception}"


@given(st.floats(1, 1e5), st.floats(0.1, 1e4), st.integers(2, 6))
def test_a_zone_may_be_lost_of_so_many_and_not_of_fewer(
    peak: float, tps: float, zones: int
) -> None:
    instances = instances_with_a_zone_lost(peak, tps, zones)

    def holds(count: int) -> bool:
        left = count - -(-count // zones)
        return left * tps * HELD_SHARE >= peak * (1 - 1e-9)

    assert holds(instances)
    assert not holds(instances - 1) or left_is_close(peak, tps)


def left_is_close(peak: float, tps: float) -> bool:
    """Whether a rounding of floating point decides."""
    exact = peak / (tps * HELD_SHARE)
    return abs(exact - round(exact)) < 1e-6 * exact


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--tps 10 --peak-tps 100", "--find-limit"),
        ("--find-limit --target p99=1s --peak-tps -3", "LLE606"),
    ],
)
def test_a_peak_that_counts_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    more = "--payload {} --region us-east-1"
    done = CliRunner().invoke(app, shlex.split(f"load-test sentiment {line} {more}"))
    assert done.exit_code != 0
    assert says in f"{done.output} {done.exception}"
