"""How many processes a machine carries, and what is said of more."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.load_test.engine.processors import (
    CONNECT_SECONDS,
    available_processors,
    doubt_of_processes,
    fix_of_silence,
    not_started,
    start_seconds,
)
from low_latency_endpoint.load_test.search import load_testing
from low_latency_endpoint.load_test.search.run_plans import users_plan

from .fake_account import GOAL, FakeAws, loaded
from .fake_generator import FakeGenerator

COUNTS = st.integers(1, 1024)
#: What one process took of a processor to start, on the slowest machine where that was measured.
MEASURED_SECONDS = 3.1


@given(COUNTS, COUNTS)
def test_processes_get_the_time_that_their_processors_need(processes: int, processors: int) -> None:
    """Even where another program has half of each processor."""
    needed = 2 * MEASURED_SECONDS * processes / processors
    assert start_seconds(processes, processors) >= max(CONNECT_SECONDS, needed)


@given(COUNTS, COUNTS, st.integers(0, 1023))
def test_what_helps_fits_the_machine(processes: int, processors: int, ready: int) -> None:
    """Never more processes; fewer only where there are more than processors."""
    error = not_started(min(ready, processes - 1), processes, processors)
    assert error.code == "LLT144"
    assert "more processes" not in error.fix
    advised = re.search(r"--processes (\d+)", error.fix)
    assert bool(advised) is (processes > processors)
    assert advised is None or int(advised[1]) == processors
    assert error.fix == fix_of_silence(processes, processors)


@given(COUNTS, COUNTS)
def test_too_many_are_told_before_they_start(processes: int, processors: int) -> None:
    said = doubt_of_processes(processes, processors)
    assert bool(said) is (processes > 2 * processors)
    assert not said or f"Use --processes {processors};" in said


@pytest.mark.parametrize("fleet", [False, True])
def test_the_command_warns_of_its_own_machine_alone(
    monkeypatch: pytest.MonkeyPatch, fleet: bool
) -> None:
    """60 workers, as the load-testing post of AWS has them; a fleet has machines of its own."""
    said: list[str] = []
    generator = FakeGenerator()
    monkeypatch.setattr(load_testing, "available_processors", lambda: 2)
    monkeypatch.setattr(load_testing.GeneratorProcess, "of_profile", lambda *_: generator)
    monkeypatch.setattr(load_testing, "open_clients", lambda *_: (FakeAws(scaled=False), "r"))
    plan = users_plan([240], seconds=5, goal=GOAL)
    options = {"metrics_wait": None, "processes": 60, "warn": said.append}
    if fleet:
        loaded(monkeypatch, FakeAws(scaled=False), plan, generator, **options)
        assert said == []
        return
    payloads = load_testing.Payloads.of_bytes(b"{}")
    load_testing.load_test(load_testing.Target("e", "r"), payloads, plan, **options)
    (warning,) = said
    assert warning.startswith("Warning: 60 processes share 2 processors: they send no more than 2")
    assert "up to 360 s to start" in warning


def test_this_machine_has_processors() -> None:
    assert available_processors() >= 1
