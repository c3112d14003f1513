"""``action.yml``: its own scripts, with the environment that GitHub sets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from low_latency_endpoint.review.github import MARKER
from low_latency_endpoint.review.verdict import FAIL_ON

from .conftest import ROOT, Checkout, Workflow, settings
from .github_stand_in import TOKEN, StandIn

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
TEMPLATE = ROOT / "constructs/low_latency_endpoint/cli/init_templates/pull-request.yml"
INSTALL, CHECK = (each for each in STEPS if "run" in each)


def run(
    step: dict[str, Any], folder: Path, environment: dict[str, str], **inputs: str
) -> subprocess.CompletedProcess[str]:
    """A step's script as a runner calls it, with the step's own environment."""
    values = {name: each.get("default", "") for name, each in ACTION["inputs"].items()} | {
        name.replace("_", "-"): value for name, value in inputs.items()
    }
    known = {f"inputs.{name}": value for name, value in values.items()} | {
        "github.action_path": str(ROOT)
    }

    def filled(text: str) -> str:
        text = re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)
        return text.replace("${{ github.token }}", TOKEN)

    own = {name: filled(value) for name, value in step["env"].items()}
    script = folder / "step.sh"
    script.write_text(step["run"], encoding="utf-8")
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=environment.get("PWD", folder),
        env={**os.environ, **environment, **own},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def job(checkout: Checkout, workflow: Workflow, tmp_path: Path) -> dict[str, str]:
    """A job on a pull request that renames an endpoint; the package is installed."""
    base, head = checkout.pull_request(
        {"endpoint.yaml": settings(endpoint_name="mood"), "a b.yaml": settings()}
    )
    environment = workflow("pull_request", base, head)
    program = tmp_path / "runner/low-latency/bin/low-latency"
    program.parent.mkdir(parents=True)
    code = "from low_latency_endpoint.cli import main; main()"
    path = os.pathsep.join(each for each in sys.path if each)
    program.write_text(
        f"#!/bin/sh\nPYTHONPATH='{path}' exec '{sys.executable}' -c '{code}' \"$@\"\n"
    )
    program.chmod(0o755)
    return {**environment, "PWD": str(checkout.folder)}


def outputs(job: dict[str, str]) -> dict[str, str]:
    lines = Path(job["GITHUB_OUTPUT"]).read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_it_posts_and_says_what_it_found(
    job: dict[str, str], github: StandIn, tmp_path: Path
) -> None:
    done = run(CHECK, tmp_path, job)
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    (made,) = github.comments
    found = outputs(job)
    assert found["verdict"] == "passed"
    assert Path(found["markdown"]).read_text(encoding="utf-8") == made["body"]
    assert set(found) == set(ACTION["outputs"])


def test_what_the_team_chose_fails_it(job: dict[str, str], github: StandIn, tmp_path: Path) -> None:
    done = run(CHECK, tmp_path, job, fail_on="refused replacement\ncost-increase=10")
    assert (done.returncode, outputs(job)["verdict"]) == (1, "failed")
    assert (
        "It fails on: `refused`, `replacement`, `cost-increase=10`." in github.comments[0]["body"]
    )


def test_without_a_comment(job: dict[str, str], github: StandIn, tmp_path: Path) -> None:
    done = run(CHECK, tmp_path, job, comment="false", settings="endpoint.yaml\na b.yaml\n")
    assert (done.returncode, github.asked) == (0, [])
    assert done.stdout.startswith(MARKER)
    assert "`a b.yaml`" in done.stdout


def test_what_cannot_be_compared_is_an_error(job: dict[str, str], tmp_path: Path) -> None:
    done = run(CHECK, tmp_path, job, base="no-such-branch")
    assert (done.returncode, outputs(job)["verdict"]) == (2, "error")


INPUTS = ("settings", "base", "fail_on", "from_load_test", "comment")
COMMANDS = (
    "$(touch owned)",
    "`touch owned`",
    '"; touch owned; "',
    "--post; touch owned",
    "x\n-o owned",
)


@pytest.mark.parametrize("name", INPUTS)
def test_no_input_is_a_command(
    job: dict[str, str], github: StandIn, tmp_path: Path, name: str
) -> None:
    """Of the shell; the program only notes its arguments, in which each value is whole."""
    program = tmp_path / "runner/low-latency/bin/low-latency"
    program.write_text('#!/bin/sh\nprintf \'%s\\0\' "$@" > "$NOTED"\n')
    for value in COMMANDS:
        noted = tmp_path / "noted"
        run(CHECK, tmp_path, {**job, "NOTED": str(noted)}, **{name: value})
        arguments = noted.read_text(encoding="utf-8").split("\0")
        given = [each.removeprefix(f"--{name.replace('_', '-')}=") for each in arguments]
        parts = {"settings": value.splitlines(), "fail_on": value.split()}.get(name, [value])
        assert name == "comment" or set(parts) <= set(given)  # which is compared with a word
        assert not (Path(job["PWD"]) / "owned").exists()
        assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("name", INPUTS)
def test_no_input_is_an_option(
    job: dict[str, str], github: StandIn, tmp_path: Path, name: str
) -> None:
    """Of the program itself, which writes a file when it is told to."""
    run(CHECK, tmp_path, job, **{name: "--output=owned\n-o owned"})
    assert not (Path(job["PWD"]) / "owned").exists()
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("version", "package"), [("", str(ROOT)), ("0.1.0", "cdk-low-latency-endpoint==0.1.0")]
)
def test_it_installs_its_own_commit_or_a_version(
    tmp_path: Path, version: str, package: str
) -> None:
    """Into an environment of its own, by an isolated Python: `pip.py` of a checkout is not run."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python").write_text(
        '#!/bin/sh\necho "$@" >> said\nmkdir -p low-latency/bin\n'
        "printf '#!/bin/sh\\necho pip \"$@\" >> said\\n' > low-latency/bin/pip\n"
        "chmod +x low-latency/bin/pip\n"
    )
    (programs / "python").chmod(0o755)
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PWD": str(tmp_path)}
    done = run(INSTALL, tmp_path, environment, version=version)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "said").read_text().splitlines() == [
        "-I -m venv low-latency",
        f"pip install --quiet --disable-pip-version-check {package}",
    ]
    assert INSTALL["working-directory"] == "${{ runner.temp }}"


def test_no_script_has_an_expression_in_it() -> None:
    """GitHub would put its text in before the shell reads it."""
    assert [each["run"] for each in STEPS if "${{" in each.get("run", "")] == []


@pytest.mark.parametrize("path", [ROOT / "action.yml", TEMPLATE], ids=lambda path: path.name)
def test_actions_are_pinned_by_their_commit(path: Path) -> None:
    used = re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8"))
    assert used
    for name, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)


def test_the_description_names_every_choice() -> None:
    description = ACTION["inputs"]["fail-on"]["description"]
    assert [each for each in FAIL_ON if each not in description] == []
