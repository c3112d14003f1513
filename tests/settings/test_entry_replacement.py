"""An entry of a settings file is replaced, key and value; the rest keeps its characters."""

from __future__ import annotations

import pytest

from low_latency_endpoint.options.yaml_source import parse_yaml
from low_latency_endpoint.settings.yaml_editing import YamlEntry, edited_yaml
from tests.refusals import refused

LIST = YamlEntry("containers", [{"image": {"uri": "r/i:1"}, "environment": {"A": "1"}}])
WRITTEN = """\
    containers:
      - image:
          uri: r/i:1
        environment:
          A: "1"
"""


def replaced(text: str, *place: str | int, entry: YamlEntry = LIST) -> str:
    return edited_yaml(text, {place: entry}).after


def test_a_block_gives_way_to_a_block() -> None:
    text = "a:\n  b:\n    old:\n      x: 1  # gone\n      y: [2]\n\n    # stays\n    next: 3\n"
    assert replaced(text, "a", "b", "old") == (f"a:\n  b:\n{WRITTEN}\n    # stays\n    next: 3\n")


def test_the_last_entry_of_a_file() -> None:
    after = replaced("a:\n  b:\n    old:\n      x: 1", "a", "b", "old")
    assert after == f"a:\n  b:\n{WRITTEN}".rstrip("\n")


def test_a_flow_gives_way_to_lines() -> None:
    after = replaced("a:\n  old: {x: 1}  # ours\n\n# of z\nz: 1\n", "a", "old")
    assert after == (
        "a:\n  containers:  # ours\n    - image:\n        uri: r/i:1\n      environment:\n"
        '        A: "1"\n\n# of z\nz: 1\n'
    )


def test_lines_of_windows_stay_so() -> None:
    after = replaced("a:\r\n  old:\r\n    x: 1\r\n  next: 3\r\n", "a", "old")
    assert "\n" not in after.replace("\r\n", "")
    assert parse_yaml(after).values["a"]["containers"] == LIST.value


def test_within_a_flow_it_is_a_flow() -> None:
    after = replaced("a: {old: {x: 1}, next: 3}  # ours\n", "a", "old")
    assert (
        after == 'a: {containers: [{image: {uri: r/i:1}, environment: {A: "1"}}], next: 3} # ours\n'
    )


def test_the_first_key_of_a_list_entry() -> None:
    text = "list:\n  - old: {s3: x}\n    next: 3\n"
    after = replaced(text, "list", 0, "old", entry=YamlEntry("data", {"s3_prefix": "s3://b/m/"}))
    assert after == "list:\n  - data:\n      s3_prefix: s3://b/m/\n    next: 3\n"


@pytest.mark.parametrize(
    "text",
    [
        "a:\n  other: 1\n",  # is not there
        "a:\n  - old\n",  # no mapping
        "base: &x {y: 1}\na:\n  old: *x\n",  # belongs to somebody else
        "a:\n  old: &x {y: 1}\nb: *x\n",  # somebody else needs it
    ],
)
def test_what_does_not_stand_alone_is_left(text: str) -> None:
    with refused("LLE937"):
        replaced(text, "a", "old")
