"""What real accounts were seen to answer (`recorded.yaml`) is tried in the local AWS, row by row."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

TESTS = Path(__file__).parents[1]
ROWS = yaml.safe_load((TESTS / "recorded" / "recorded.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", ROWS)
def test_each_recording_is_tried_or_says_why_not(name):
    row = ROWS[name]
    assert {"input", "answered", "links"} < row.keys()
    assert all(link.startswith("https://") for link in row["links"])
    if "run" not in row:
        assert row["not_run"]
        return
    module, _, test = row["run"].partition("::")
    assert f"def {test}(" in (TESTS / module).read_text("utf-8")
