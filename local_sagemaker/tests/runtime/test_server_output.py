"""The output of model servers: a file that does not grow for ever, and lines of a log group."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from local_sagemaker.runtime import containers
from local_sagemaker.runtime.containers import ServerOutput


def written(output: ServerOutput, *parts: bytes) -> None:
    """Write through a pipe, as a server does; one that nobody reads is a BrokenPipeError."""
    reading, writing = os.pipe()
    output.follow(os.fdopen(reading, "rb"))
    with os.fdopen(writing, "wb", buffering=0) as pipe:
        for part in parts:
            pipe.write(part)
    output.settle()


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def output(tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> ServerOutput:
    monkeypatch.setattr(containers, "_LARGEST_FILE", 1000)
    return ServerOutput(tmp_path / "logs" / "server.log", lines.extend)


def test_a_full_file_becomes_the_former_one(output: ServerOutput, lines: list[str]) -> None:
    written(output, b"a" * 999 + b"\n", b"the last words\n")
    assert output.ending(20) == "..." + "aa\nthe last words"
    assert lines == ["a" * 999, "the last words"]


def test_the_last_words_are_there_though_the_file_is_new(output: ServerOutput) -> None:
    written(output, b"x" * 1990 + b" the end\n")
    assert not output.path.exists()
    assert output.ending(12).endswith("the end")


@pytest.mark.parametrize("fault", ["no folder", "a folder stands there"])
def test_a_server_writes_on_where_its_file_cannot_be_kept(
    output: ServerOutput, lines: list[str], fault: str
) -> None:
    if fault == "no folder":
        output.path.parent.rmdir()
    else:
        (output.path.parent / "server.log.1").mkdir()
    written(output, *[b"a" * 999 + b"\n"] * 200)
    assert lines == ["a" * 999] * 200


def test_a_line_that_is_too_long_comes_in_parts(output: ServerOutput, lines: list[str]) -> None:
    written(output, b"a" * 60_000, b"b" * 60_000 + b"\n", b"next\n")
    assert "".join(lines) == "a" * 60_000 + "b" * 60_000 + "next"
    assert max(map(len, lines)) <= 64 * 1024
    assert lines[-1] == "next"
