"""Large and odd files are refused early, and what is printed about them stays readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from low_latency_endpoint.errors import SettingsError
from low_latency_endpoint.options.yaml_source import parse_yaml
from low_latency_endpoint.settings import load_settings, parse_settings
from tests.settings.test_mistakes import text_of
from tests.settings_files import problems


def test_the_hundred_first_problem_is_counted_and_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(text_of({}, {}) + "".join(f"colour-{n}: blue\n" for n in range(900)))
    error = caught.value
    assert len(error.problems) == 900
    shown = str(error)
    assert shown.startswith("settings: 900 problems\n")
    assert shown.count("LLE904") == 100
    assert shown.endswith("\nand 800 more")
    assert error.parts[-1] == "and 800 more"


@pytest.mark.parametrize("content", ["# " + "x" * 2_000_000, "a: 1\n" * 400_000])
def test_a_file_of_megabytes_is_not_read(tmp_path: Path, content: str) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text(content)
    assert problems(path, load_settings) == problems(content) == [(1, "LLE388")]


def test_more_values_than_are_read_end_the_reading() -> None:
    assert [code for _, code in problems("[" + "1, " * 300_000 + "1]")] == ["LLE907"]


def test_merges_of_merges_are_counted_as_often_as_they_are_used() -> None:
    text = "a0: &a0 {" + ", ".join(f"k{number}: 1" for number in range(50)) + "}\n"
    for level in range(1, 8):
        text += f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 20)}]}}\n"
    assert [error.code for _, error in parse_yaml(text).problems] == ["LLE907"]


def test_own_keys_win_over_merged_ones_and_earlier_mappings_over_later_ones() -> None:
    source = parse_yaml(
        "a: &a {x: 1, y: 1}\nb: &b {x: 2, y: 2, z: 2}\nc:\n  <<: [*a, *b]\n  y: 3\n"
    )
    assert source.values["c"] == {"x": 1, "y": 3, "z": 2}
    assert [source.line(("c", name)) for name in "xyz"] == [1, 5, 2]
    assert source.problems == []


def test_merges_nested_in_merges() -> None:
    source = parse_yaml(
        "a: &a {x: 1, deep: {one: 1}}\nb: &b {<<: *a, y: 2}\nc: {<<: *b, deep: {two: 2}}\n"
    )
    assert source.values["c"] == {"x": 1, "y": 2, "deep": {"two": 2}}
    assert source.line(("c", "deep")) == 3
    assert source.line(("c", "deep", "two")) == 3
    assert ("c", "deep", "one") not in source.lines
