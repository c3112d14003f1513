"""The example that spreads a search over a cluster: two parts of an array job, merged."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "simulate_on_a_cluster.py"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    specification = importlib.util.spec_from_file_location("simulate_on_a_cluster", EXAMPLE)
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    real = module.simulate
    monkeypatch.setattr(
        module,
        "simulate",
        lambda scenario, **options: real(scenario, **{**options, "requests": 2000}),
    )  # what takes its time
    return module


def test_parts_of_an_array_job_are_merged_to_the_whole(
    example: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for part in ("0", "1"):
        monkeypatch.setenv("AWS_BATCH_JOB_ARRAY_INDEX", part)
        monkeypatch.setattr(sys, "argv", [EXAMPLE.name, "--of", "2", "--output", str(tmp_path)])
        example.main()
    written = [json.loads(file.read_text("utf-8")) for file in sorted(tmp_path.iterdir())]
    assert [len(each) for each in written] == [15, 15]
    monkeypatch.delenv("AWS_BATCH_JOB_ARRAY_INDEX")
    monkeypatch.setattr(sys, "argv", [EXAMPLE.name, "--merge", str(tmp_path)])
    example.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(example.points()) == 30
    # A part that is run again gives the same.
    assert example.try_point(example.points()[1]) == written[1][0]


def test_a_part_without_a_number_is_refused(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_BATCH_JOB_ARRAY_INDEX", raising=False)
    monkeypatch.setattr(sys, "argv", [EXAMPLE.name, "--of", "2"])
    with pytest.raises(SystemExit) as ended:
        example.main()
    assert ended.value.code == 2
