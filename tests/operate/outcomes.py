"""How a case of a check, before or after a deploy, is judged."""

from __future__ import annotations

from collections.abc import Sequence

from low_latency_endpoint.operate.checking.checks import Result


def assert_told(results: Sequence[Result], status: str, words: Sequence[str]) -> None:
    """One result of this status has all the words; a pass stands alone, and a fault has its fix."""
    of_status = [each for each in results if each.status == status]
    assert of_status, [(each.status, each.evidence) for each in results]
    if status == "pass":
        assert {each.status for each in results} == {"pass"}, results
    assert any(
        all(word in f"{each.subject} {each.evidence} {each.fix}" for word in words)
        for each in of_status
    ), of_status
    for each in results:
        assert bool(each.fix) or each.status in ("pass", "unknown"), each
