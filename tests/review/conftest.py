"""A repository with a base, a pull request merged into it by GitHub, and GitHub on loopback."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from low_latency_endpoint.cli import main
from low_latency_endpoint.review.github import GitHub
from tests.git_commands import git

from .github_stand_in import TOKEN, StandIn, github_stand_in

ROOT = Path(__file__).parents[2]
EVENTS = Path(__file__).with_name("events")
SHIPPED: dict[str, Any] = yaml.safe_load((ROOT / "endpoint.yaml").read_text(encoding="utf-8"))


def settings(shared: dict[str, Any] | None = None, **changes: Any) -> str:
    """The settings that ship, with changes of their endpoint and of what is around it."""
    sentiment = {**SHIPPED["endpoints"]["sentiment"], **changes}
    values = {**SHIPPED, "endpoints": {"sentiment": sentiment}, **(shared or {})}
    return yaml.safe_dump(values, sort_keys=False)


class Answer(NamedTuple):
    code: int
    out: str
    err: str


@dataclasses.dataclass
class Checkout:
    """A Git repository in which files are written and committed."""

    folder: Path

    def git(self, *arguments: str) -> str:
        return git(self.folder, *arguments)

    def commit(self, files: dict[str, str | None], message: str = "A change") -> str:
        """Write files, or delete those without text."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def pull_request(self, files: dict[str, str | None]) -> tuple[str, str]:
        """Both shas of a pull request that GitHub has merged into main, which is checked out."""
        self.git("checkout", "--quiet", "-b", "larger")
        head = self.commit(files)
        self.git("checkout", "--quiet", "main")
        base = self.git("rev-parse", "HEAD")
        self.git("checkout", "--quiet", "--detach")
        self.git("merge", "--quiet", "--no-ff", "-m", "Merge", "larger")
        return base, head


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """With the settings that ship on main, and no word of GitHub's."""
    for name in [each for each in os.environ if each.startswith("GITHUB_")]:
        monkeypatch.delenv(name)
    made = Checkout(tmp_path / "checkout")
    made.folder.mkdir()
    made.git("init", "--quiet", "-b", "main")
    made.commit({"endpoint.yaml": settings()})
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("COLUMNS", "200")
    return made


@pytest.fixture
def github() -> Iterator[StandIn]:
    with github_stand_in() as held:
        yield held


Workflow = Callable[..., dict[str, str]]


@pytest.fixture
def workflow(
    github: StandIn, checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Workflow:
    """The environment of a workflow that runs on a recorded event."""

    def begin(name: str, base: str, head: str, number: int | None = None) -> dict[str, str]:
        text = (EVENTS / f"{name}.json").read_text(encoding="utf-8")
        event = json.loads(text.replace("$base", base).replace("$head", head))
        path = tmp_path / "event.json"
        path.write_text(json.dumps(event), encoding="utf-8")
        environment = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": github.url,
            "GITHUB_EVENT_NAME": name.removesuffix("_of_a_fork"),
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_REPOSITORY": "octocat/endpoints",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_TOKEN": TOKEN,
            "RUNNER_TEMP": str(tmp_path / "runner"),
            "no_proxy": "127.0.0.1",
        }
        (tmp_path / "runner").mkdir(exist_ok=True)
        for each, value in environment.items():
            monkeypatch.setenv(each, value)
        return environment

    return begin


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that GitHub was waited for, without waiting."""
    waited: list[float] = []
    made = GitHub.of

    def of(repository: str, environment: Any) -> GitHub:
        return dataclasses.replace(made(repository, environment), sleep=waited.append)

    monkeypatch.setattr(GitHub, "of", of)
    return waited


Check = Callable[..., Answer]


@pytest.fixture
def check(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> Check:
    """Run the command in the checkout."""

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["low-latency", "check-pull-request", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert TOKEN not in out + err
        return Answer(int(ended.value.code or 0), out, err)

    return run
