"""Every example is a complete app that synthesises as a user would run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("existing_vpc", "new_vpc", "single_constructs", "two_endpoints")


def test_every_app_among_the_examples_is_tried():
    apps = {
        path.stem
        for path in (ROOT / "examples").glob("*.py")
        if "app.synth()" in path.read_text(encoding="utf-8")
    }
    assert apps == set(EXAMPLES)


RUN = """
import runpy, sys
import aws_cdk
made, whole = [], aws_cdk.App
aws_cdk.App = lambda *args, **kwargs: made.append(whole(*args, **kwargs)) or made[-1]
for path in sys.argv[1:]:
    runpy.run_path(path, run_name="__main__")
    (stack,) = made.pop().synth().stacks
    warned = [each.entry.data for each in stack.messages if str(each.level).endswith("WARNING")]
    assert not warned, (path, warned)
    types = {each["Type"] for each in stack.template["Resources"].values()}
    assert "AWS::SageMaker::Endpoint" in types, path
"""


def test_examples_synthesise_without_a_warning(tmp_path: Path):
    """Outside of the tests' process, one after the other: most of each would be Node.js's start."""
    paths = [str(ROOT / "examples" / f"{name}.py") for name in EXAMPLES]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *paths],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
