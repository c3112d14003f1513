"""What findings promise: ids, sources, and keys that the settings file has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import findings as causes
from low_latency_endpoint.operate.diagnose.findings import KINDS


@pytest.mark.parametrize("made", list(KINDS.values()), ids=lambda made: made.id)
def test_a_kind_of_finding_is_complete(made: Any) -> None:
    assert re.fullmatch(r"LLD[1-8]\d\d", made.id)
    assert made.source.startswith(
        (
            "https://docs.aws.amazon.com/",
            "https://repost.aws/",
            "https://aws.amazon.com/blogs/",
            "https://docs.vllm.ai/",
        )
    )
    assert not made.title.endswith(".")


def test_an_id_is_taken_once() -> None:
    """YAML itself would take the last of two."""
    text = (Path(causes.__file__).parent / "causes.yaml").read_text("utf-8")
    ids = re.findall(r"^  (LLD\d{3}):$", text, re.MULTILINE)
    assert ids == sorted(set(ids)) == list(causes.KINDS)
