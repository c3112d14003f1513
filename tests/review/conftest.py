"""A repository with a base, and a pull request merged into it as GitHub does."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from low_latency_endpoint.cli import main
from tests.git_commands import git

ROOT = Path(__file__).parents[2]
SHIPPED: dict[str, Any] = yaml.safe_load(
    (ROOT / "tests" / "sentiment.yaml").read_text(encoding="utf-8")
)


def settings(shared: dict[str, Any] | None = None, **changes: Any) -> str:
    """The settings that ship, with changes of their endpoint and of what is around it."""
    sentiment = {**SHIPPED["endpoints"]["sentiment"], **changes}
    values = {**SHIPPED, "endpoints": {"sentiment": sentiment}, **(shared or {})}
    return yaml.safe_dump(values, sort_keys=False)


NEW_NAME = settings(endpoint_name="mood")


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
    """With the settings that ship on main."""
    made = Checkout(tmp_path / "checkout")
    made.folder.mkdir()
    made.git("init", "--quiet", "-b", "main")
    made.commit({"endpoint.yaml": settings()})
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("COLUMNS", "200")
    return made


Check = Callable[..., Answer]


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Check:
    """Run the command in the checkout, as Markdown unless JSON is asked for."""

    def run(against: str, *arguments: str) -> Answer:
        form = [] if {"--json", "--text"} & set(arguments) else ["--markdown"]
        given = [each for each in arguments if each != "--text"]
        command = ["low-latency", "plan", f"--against={against}", *form, *given]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Answer(int(ended.value.code or 0), out, err)

    return run
