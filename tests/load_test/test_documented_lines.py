"""docs/how-to/load-tests.md: its command lines run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.load_test.engine.failure_causes import NOT_THE_INSTANCES

from .fake_account import FakeAws
from .fake_generator import FakeGenerator

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "load-tests.md").read_text(
    "utf-8"
)


def test_the_documented_lines_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCS, re.S)
    monkeypatch.chdir(tmp_path)
    Path("body.json").write_text("{}")
    aws = FakeAws(invocations=[1e9])
    monkeypatch.setattr(
        "low_latency_endpoint.load_test.search.load_testing.open_clients",
        lambda profile, region: (aws, region),
    )
    monkeypatch.setattr(
        "low_latency_endpoint.load_test.search.load_testing.GeneratorProcess.of_profile",
        lambda *given: FakeGenerator(),
    )
    exec(compile(code, "docs/how-to/load-tests.md", "exec"), {})
    assert "CPU and GPU use at 100 TPS was not read" in capsys.readouterr().out
    assert "<figure id=" in Path("report.html").read_text("utf-8")


def test_the_page_names_what_there_is() -> None:
    from low_latency_endpoint.load_test.search import saturation, sender_verdict
    from low_latency_endpoint.load_test.search.verdict_texts import VERDICTS

    named = set(re.findall(r"^\| `([a-z][a-z-]+)`(?:, `([a-z-]+)`)? \|", DOCS, re.M))
    kinds_named = {name for pair in named for name in pair if name}
    code = "".join(Path(one.__file__).read_text("utf-8") for one in (saturation, sender_verdict))
    assert kinds_named == set(VERDICTS) - {"unexplained"}
    by_what_is_measured = {"cpu", "gpu", *NOT_THE_INSTANCES}
    assert all(f'"{kind}"' in code for kind in {*VERDICTS} - by_what_is_measured)
    options = set(re.findall(r"`(--[a-z-]+)", DOCS))
    shown = CliRunner().invoke(app, ["load-test", "--help"]).output
    shown += CliRunner().invoke(app, ["plan", "--help"]).output
    assert {option for option in options if option not in shown} == set()
