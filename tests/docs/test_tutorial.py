"""The tutorial, run as it is printed: one shell, one folder, a local AWS on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.console_blocks import ROOT, commands, shows

PAGE = ROOT / "docs" / "tutorial" / "first-endpoint.md"
#: Not run again here: it installed what runs this test, and what needs an account of the reader's.
ELSEWHERE = ("make setup", "source .venv/bin/activate", "make deploy")
_END = "-- end of command"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the tutorial uses of a checkout."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("app.py", "cdk.json", "endpoint.yaml", "endpoint.schema.json"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "stacks", folder / "stacks")
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    return folder


@pytest.mark.realtime  # deploys with the CDK CLI and loads the endpoint: three minutes
def test_each_step_does_what_the_page_says(checkout: Path) -> None:
    """Every command succeeds, and prints what the page shows."""
    steps = [each for each in commands(PAGE.read_text("utf-8")) if each.text not in ELSEWHERE]
    assert len(steps) > 20
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("AWS_")
    } | {"COLUMNS": "80", "PYTHONUNBUFFERED": "1"}
    script = checkout / "tutorial.sh"
    ends = f"status=$?; echo; echo '{_END}' $status"
    script.write_text("\n".join(["set -m", *(f"{each.text}\n{ends}" for each in steps), ""]))
    with subprocess.Popen(
        ["bash", str(script)],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=(checkout / "stderr.log").open("w"),
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            output, _ = shell.communicate(timeout=280)
        finally:
            subprocess.run(["pkill", "-KILL", "-s", str(shell.pid)], check=False)
    parts = output.split(f"\n{_END} ")
    log = (checkout / "stderr.log").read_text()
    assert len(parts) == len(steps) + 1, log[-3000:]
    for number, step in enumerate(steps):
        printed = parts[number].partition("\n")[2] if number else parts[0]
        status = parts[number + 1].split("\n")[0]
        assert status == "0", f"{step.text}: {printed[-2000:]}\n{log[-2000:]}"
        if step.shown:
            assert shows(step.shown, printed.strip("\n") + "\n"), f"{step.text}:\n{printed}"
