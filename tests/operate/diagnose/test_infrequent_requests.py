"""Overhead of requests that come rarely, in batches, or all the time; and since when it is high."""

from __future__ import annotations

from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose.document import document
from low_latency_endpoint.report.document import Sentence

from .account import MINUTE
from .conftest import Run
from .scenarios import Scenario, constant


def _asked(tps: Any, **more: Any) -> Scenario:
    values: dict[str, Any] = {
        "tps": tps,
        "instances": constant(2),
        "cpu": constant(2),
        "overhead": constant(90),
        "planned": None,
        "scaling": None,
    }
    return Scenario(**(values | more))


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("every", [4, 5, 7, 12])
@pytest.mark.parametrize("batch", [1, 20, 200, 30_000])
def test_batches_with_pauses_are_no_steady_traffic(
    batch: int, every: int, length: int, run: Run
) -> None:
    """Of any size, also across two minutes."""
    (finding,) = run(_asked(lambda m: batch / 60 if m % every < length else 0)).findings
    assert finding.id == "LLD202"
    assert "warm_up.keep_warm" in [change.key for change in finding.changes]


@pytest.mark.parametrize("slow", [1.0, 0.0])
@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("every", [7, 10])
def test_a_moment_after_each_pause_is_enough(
    every: int, length: int, slow: float, run: Run
) -> None:
    """The first minute of a batch alone, which no alarm over three minutes would see."""
    asked = _asked(
        lambda m: 0.5 if m % every < length else 0,
        overhead=lambda m: 90 if m % every == 0 and slow else 6,
    )
    findings = run(asked).findings
    assert [finding.id for finding in findings] == (["LLD202"] if slow else [])


def test_a_moment_after_some_pauses_is_not(run: Run) -> None:
    """Two of eight."""
    asked = _asked(lambda m: 0.5 if m % 7 < 3 else 0, overhead=lambda m: 90 if m in (14, 35) else 6)
    assert run(asked).findings == ()


@pytest.mark.parametrize("a_minute", [6, 10, 30, 59, 61, 600, 36_000])
def test_few_requests_are_among_the_causes_of_what_remains(a_minute: int, run: Run) -> None:
    (finding,) = run(_asked(constant(a_minute / 60))).findings
    assert finding.id == "LLD203"
    assert "steady" not in " ".join([finding.kind.title, *finding.path])
    keys = [change.key for change in finding.changes]
    assert ("warm_up.keep_warm" in keys) == (a_minute < 60)


@pytest.mark.parametrize("every", [3, 5, 10])
@pytest.mark.parametrize("batch", [20, 90])
def test_the_rate_counts_minutes_without_requests(batch: int, every: int, run: Run) -> None:
    """As the line of the variant has it, whether or not CloudWatch has zeros for them."""
    made = run(_asked(lambda m: batch / 60 if m % every == 0 else 0))
    (finding,) = made.findings
    minutes = 60 - every + 1
    rate = batch * (60 // every) / minutes
    assert f"{rate:.2g} requests a minute" in " ".join(each.text for each in finding.evidence)
    titles = [getattr(part, "title", "") for part in document(made).parts]
    assert any(f"({rate / 60:.2g} a second)" in title for title in titles), titles


_SLOW: dict[str, dict[str, Any]] = {
    "OverheadLatency": {},
    "ModelLatency": {"overhead": constant(6), "latency": lambda m, i: 500},
}


@pytest.mark.parametrize("metric", _SLOW)
@pytest.mark.parametrize("every", [1, 2, 3, 5, 6, 7, 10, 15, 20])
def test_the_head_line_and_the_finding_begin_with_the_first_slow_request(
    every: int, metric: str, run: Run
) -> None:
    made = run(_asked(lambda m: 1 / 60 if m % every == 0 else 0, minutes=120, **_SLOW[metric]))
    (onset,) = made.to_dict()["onsets"]
    (finding,) = made.findings
    assert onset["start"] == made.measurements.start.isoformat()
    assert finding.span is not None
    assert finding.span[0] == made.measurements.start
    lines = [part.text for part in document(made).parts if isinstance(part, Sentence)]
    assert "since 02:00, the first request of the window" in lines[0]


@pytest.mark.parametrize("every", [1, 3, 6, 10])
def test_fast_requests_before_it_are_told(every: int, run: Run) -> None:
    first = 60
    made = run(
        _asked(
            lambda m: 1 / 60 if m % every == 0 else 0,
            minutes=120,
            overhead=lambda m: 90 if m >= first else 6,
        )
    )
    (onset,) = made.to_dict()["onsets"]
    assert onset["start"] == (made.measurements.start + first * MINUTE).isoformat()
    lines = [part.text for part in document(made).parts if isinstance(part, Sentence)]
    assert "first request" not in lines[0]
