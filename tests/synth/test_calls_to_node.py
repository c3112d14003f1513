"""What synthesis costs in calls to Node.js, each about half a millisecond of processor time."""

from __future__ import annotations

from collections import Counter

import pytest
from jsii._kernel.providers import process


@pytest.fixture
def calls(monkeypatch):
    made, send = Counter(), process._NodeProcess.send

    def counted(self, request, response_type):
        made[getattr(request, "method", "") or getattr(request, "fqn", type(request).__name__)] += 1
        return send(self, request, response_type)

    monkeypatch.setattr(process._NodeProcess, "send", counted)
    return made


def test_a_pattern_makes_few(stack, parts, calls):
    """By hand, ``benchmarks/handwritten_l1_app.py`` makes as many resources in 211 calls."""
    pattern = parts.pattern(stack)
    assert sum(calls.values()) < 310
    assert not calls["fromVpcAttributes"]  # loads CDK's table of Regions, as long as 150 calls
    assert pattern.network.vpc is pattern.network.vpc
    assert pattern.network.subnets is pattern.network.subnets
    assert calls["fromVpcAttributes"] == 1
