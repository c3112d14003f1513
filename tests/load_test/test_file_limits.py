"""Files of many lines, cells or bodies: refused before memory holds what is in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from low_latency_endpoint.errors import ConfigurationError, ErrorRule, given_files
from low_latency_endpoint.facts.limits import LARGEST_BODY_BYTES
from low_latency_endpoint.load_test.engine import payloads, prompts
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.prompts import recorded_lengths
from low_latency_endpoint.options import warm_up as warm_up_module
from low_latency_endpoint.options.warm_up import WarmUpPayload
from low_latency_endpoint.plan.price_file import read_price_file
from low_latency_endpoint.plan.recorded_traffic import read_recording

MOST = 1000
BYTES = 10_000


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_files, "MOST_LINES", MOST)
    monkeypatch.setattr(prompts, "MOST_LINES", MOST)
    monkeypatch.setattr(payloads, "_MOST_FILES", 10)
    monkeypatch.setattr(payloads, "_LARGEST_FILE", BYTES)


READERS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "recording": ("LLS130", read_recording, "1\n"),
    "recording in old line ends": ("LLS130", read_recording, "1\r"),
    "recording in vertical tabs": ("LLS130", read_recording, "1\v"),
    "recording in one line": ("LLS130", read_recording, "1,"),
    "prices": ("LLE890", read_price_file, "#\n"),
    "tokens": ("LLT165", recorded_lengths, "input,output\n"),
    "tokens in JSON": ("LLT165", recorded_lengths, "{}\n"),
    "bodies": ("LLT101", Payloads.of, "{}\n"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_too_many_lines_is_refused_before_they_are_parted(
    name: str, tmp_path: Path
) -> None:
    code, reader, line = READERS[name]
    file = tmp_path / "file.jsonl"
    file.write_text(line * (2 * MOST + 2), newline="")
    with pytest.raises(ConfigurationError) as caught:
        reader(file)
    assert caught.value.code == code
    assert "the most" in caught.value.got


WIDE = ",".join(f"c{number}" for number in range(MOST // 2))


@pytest.mark.parametrize("head", [WIDE, f"#\n\n{WIDE}", f'"x\n",{WIDE}'])
@pytest.mark.parametrize("name", ["prices", "tokens", "recording"])
def test_a_wide_head_over_many_lines_is_refused(name: str, head: str, tmp_path: Path) -> None:
    """A few kilobytes, of which a reader would make a cell for each column of each line."""
    code, reader, _ = READERS[name]
    file = tmp_path / "file.csv"
    file.write_text(f"{head}\n" + "1\n" * (MOST // 2))
    with pytest.raises(ConfigurationError) as caught:
        reader(file)
    assert caught.value.code == code
    assert "cells, where" in caught.value.got


def test_a_file_of_as_many_lines_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"
    file.write_text("1\r\n" * MOST, newline="")
    assert len(read_recording(file).times) == MOST
    assert len(Payloads.of(file).bodies) == MOST


def test_a_line_of_too_many_requests_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"
    lengths = [5] * (MOST + 1)
    file.write_text(f'{{"input_lens": {lengths}, "output_lens": {lengths}}}\n')
    with pytest.raises(ConfigurationError, match="more than 1,000 requests"):
        recorded_lengths(file)


def test_no_more_of_a_body_is_read_than_one_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a file that grows after its size was judged."""
    file = tmp_path / "body"
    file.write_bytes(b"{}")
    warm_up = WarmUpPayload(file=file, content_type="text/csv")
    with file.open("wb") as made:
        made.truncate(200 * 1024 * 1024)
    allowed: list[int] = []

    def counted(path: Path, unreadable: ErrorRule, most: int, *more: ErrorRule) -> bytes:
        allowed.append(most)
        return given_files.bytes_of(path, unreadable, most, *more)

    monkeypatch.setattr(payloads, "bytes_of", counted)
    monkeypatch.setattr(warm_up_module, "bytes_of", counted)
    for code, reader in (("LLT103", lambda: Payloads.of(file)), ("LLE545", lambda: warm_up.body)):
        with pytest.raises(ConfigurationError) as caught:
            reader()
        assert caught.value.code == code
    assert allowed == [LARGEST_BODY_BYTES] * 2


@pytest.mark.parametrize(
    ("files", "each", "says"), [(11, 1, "more files"), (4, 3000, "larger files")]
)
def test_a_folder_has_an_end(files: int, each: int, says: str, tmp_path: Path) -> None:
    for number in range(files):
        (tmp_path / f"{number:03}").write_bytes(b"x" * each)
    with pytest.raises(ConfigurationError, match=says) as caught:
        Payloads.of(tmp_path)
    assert caught.value.code == "LLT101"
