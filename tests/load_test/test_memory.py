"""Users times bodies are compared with the memory that is left, before anything is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.load_test.engine import memory
from low_latency_endpoint.load_test.engine.memory import available_bytes, check_bodies
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search import load_testing
from low_latency_endpoint.load_test.search.run_plans import rate_plan, users_plan
from tests.refusals import refused

from .fake_account import GOAL, FakeAws
from .fake_generator import FakeGenerator

MB = 1_000_000


@pytest.mark.parametrize(
    ("users", "available", "warned"),
    [(100, 1_000 * MB, False), (100, 999 * MB, True), (100, 500 * MB, True), (1, None, False)],
)
def test_half_of_the_memory_is_worth_a_word(
    users: int, available: int | None, warned: bool
) -> None:
    assert bool(check_bodies(users, 5 * MB, available)) is warned


def test_more_than_the_memory_is_refused() -> None:
    with refused("LLT145", got="10,000 users with bodies of 5 MB: 50 GB", says="at most 16 GB"):
        check_bodies(10_000, 5 * MB, 16_000 * MB)


def test_this_machine_tells_what_it_has() -> None:
    left = available_bytes()
    assert left is None or left > 1 * MB


@pytest.mark.parametrize(
    ("most", "left"), [("1000", 700), ("400", 100), ("200", 0), ("max", None), ("", None)]
)
def test_a_container_has_what_its_control_group_leaves(
    most: str, left: int | None, tmp_path: Path
) -> None:
    (tmp_path / "memory.max").write_text(f"{most}\n")
    (tmp_path / "memory.current").write_text("500\n")
    (tmp_path / "memory.stat").write_text("anon 300\ninactive_file 200\n")
    assert memory._of_container(tmp_path) == left
    assert memory._of_container(tmp_path / "none") is None


def told(monkeypatch: pytest.MonkeyPatch, plan: Any, body: bytes, **more: Any) -> list[str]:
    """What is said before a test from a machine with 100 MB left."""
    said: list[str] = []
    monkeypatch.setattr(load_testing, "available_bytes", lambda: 100 * MB)
    monkeypatch.setattr(load_testing, "open_clients", lambda *_: (FakeAws(scaled=False), "r"))
    monkeypatch.setattr(
        load_testing.GeneratorProcess, "of_profile", lambda *_: more.get("local", FakeGenerator())
    )
    load_testing.load_test(
        Target("e", "us-east-1"),
        Payloads.of_bytes(body),
        plan,
        metrics_wait=None,
        warn=said.append,
        generator=more.get("generator"),
    )
    return said


def test_a_closed_loop_is_refused_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = users_plan([1, 50], seconds=5, goal=GOAL)
    local = FakeGenerator()
    assert told(monkeypatch, plan, b"x" * MB, local=local) == []
    (warning,) = told(monkeypatch, plan, b"x" * (2 * MB - 1), local=FakeGenerator())
    assert warning.startswith("Warning: 50 users with bodies of 2 MB: 100 MB of the 100 MB")
    untouched = FakeGenerator()
    with refused("LLT145"):
        told(monkeypatch, plan, b"x" * 3 * MB, local=untouched)
    assert untouched.steps == []
    assert told(monkeypatch, plan, b"x" * 3 * MB, generator=FakeGenerator) == []


def test_an_open_loop_says_what_a_stall_would_take(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = rate_plan([100], seconds=5, goal=GOAL)
    assert told(monkeypatch, plan, b"x" * 1_000) == []
    (warning,) = told(monkeypatch, plan, b"x" * MB)
    assert "6,000 requests with bodies of 1 MB wait for answers: 6 GB" in warning
