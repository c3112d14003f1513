"""Every example is a complete app that synthesises as a user would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("existing_vpc", "new_vpc", "single_constructs", "two_endpoints")


def test_every_app_among_the_examples_is_tried():
    apps = {
        path.stem
        for path in (ROOT / "examples").glob("*.py")
        if "app.synth()" in path.read_text(encoding="utf-8")
    }
    assert apps == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_synthesises(name: str, tmp_path: Path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py")],
        cwd=tmp_path, env=_environment(tmp_path), capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (template,) = tmp_path.glob("*.template.json")
    assert '"AWS::SageMaker::Endpoint"' in template.read_text(encoding="utf-8")


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "CDK_OUTDIR": str(folder)}
