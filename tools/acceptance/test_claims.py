"""Tries each claim of claims.yaml in an AWS account; `make accept` runs this and nothing else does.

The steps cost money: conftest.py asks for account, Region and budget before anything starts.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .claims import CLAIMS, Claim
from .judgements import measurements
from .observations import Document
from .steps import STEPS

pytestmark = [pytest.mark.aws, pytest.mark.timeout(0)]

_STEPS = {step.name: step for step in STEPS}


@pytest.mark.parametrize(
    ("saw", "claim"),
    [pytest.param(_STEPS[claim.step], claim, id=f"{claim.step}-{claim.id}") for claim in CLAIMS],
    indirect=["saw"],
)
def test_claim(saw: Document, claim: Claim, record_property: Callable[[str, object], None]) -> None:
    """AWS behaves as the claim states; skipped where this run cannot tell."""
    record_property("claim", claim.id)
    for name, value in measurements(saw).items():
        record_property(name, value)
    holds = claim.holds(saw)
    if holds is None:
        pytest.skip("this run cannot tell")
    if not holds:
        pytest.fail(f"refuted: {claim.statement}", pytrace=False)
