"""``make demo`` from start to end: the real CDK CLI against the local AWS."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _demo(*arguments: object, home: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py", *map(str, arguments)],
        cwd=home,
        env={**os.environ, "TMPDIR": str(home), "COLUMNS": "140"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def test_the_demo_deploys_reads_back_changes_and_leaves_nothing(tmp_path: Path) -> None:
    status, text = _demo(home=tmp_path)
    assert status == 0, text
    headings = re.findall(r"^\[(\d)/8\]", text, re.MULTILINE)
    assert headings == ["1", "2", "3", "4", "5", "6", "7", "8"]
    for found in (
        "use1-az1",
        "com.amazonaws.us-east-1.sagemaker.runtime",
        "LEAST_OUTSTANDING_REQUESTS",
        "SageMakerVariantInvocationsPerInstance at 7800",
        # 200 TPS per instance x 0.5 x 60 seconds
        "6000",
        "0 fail",
        "Nothing found",
        "1 finding.",
        "build/demo-dashboard.png",
        "Nothing is left: no stack, no resource.",
        "No process is left.",
    ):
        assert found in text
    assert re.search(r"ModelLatency +│ p99 +│ > \d+ ms", text)
    assert not list(tmp_path.iterdir())


def test_a_bad_settings_file_is_told_before_anything_starts(tmp_path: Path) -> None:
    settings = tmp_path / "bad.yaml"
    settings.write_text("client_zones: {ids: [use1-az1]}\nendpoints: {}\n", encoding="utf-8")
    status, text = _demo("--settings", settings, home=tmp_path)
    assert status == 1
    assert "bad.yaml:1: LLE103" in text
    assert "Traceback" not in text
    assert "[1/6]" not in text
    assert list(tmp_path.iterdir()) == [settings]
