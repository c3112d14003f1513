"""Values go into a settings file; comments, order, quotes and line ends stay."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import event, given
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError, SettingsError
from low_latency_endpoint.options.yaml_source import parse_yaml
from low_latency_endpoint.settings import load_settings
from low_latency_endpoint.settings.yaml_editing import edit_settings_file, edited_yaml, write_edit
from tests.refusals import refused
from tests.settings_files import problems

REPOSITORY = Path(__file__).parents[2]
SHIPPED = REPOSITORY / "endpoint.yaml"
SENTIMENT = ("endpoints", "sentiment")


def valued(values: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        values = values[key] if isinstance(values, list) else (values or {}).get(key)
    return values


def changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    """Lines that are only in one of the two."""
    old, new = before.splitlines(), after.splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


def only_its_lines_differ(before: str, after: str, *, most: int = 1) -> bool:
    """Whether all but a stretch of so many lines is as before, its comments too."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    shortest = min(len(old), len(new))
    same = next((n for n in range(shortest) if old[n] != new[n]), shortest)
    rest = next((n for n in range(shortest - same) if old[-1 - n] != new[-1 - n]), shortest - same)
    gone, come = old[same : len(old) - rest], new[same : len(new) - rest]
    comments = re.findall(r"# comment \d+", "".join(gone))
    return len(gone) <= most and comments == re.findall(r"# comment \d+", "".join(come))


def test_the_shipped_file_keeps_its_comments() -> None:
    before = SHIPPED.read_text()
    edit = edit_settings_file(
        SHIPPED,
        {
            (*SENTIMENT, "instance_type"): "ml.c6i.4xlarge",
            (*SENTIMENT, "throughput"): {"tps_per_instance": 212.5, "safety_factor": 0.45},
            (*SENTIMENT, "latency", "p99"): "150ms",
            (*SENTIMENT, "instances"): {"max": 20},
        },
    )
    gone, come = changed_lines(before, edit.after)
    assert gone == [
        "    instance_type: ml.m5.12xlarge",
        "      p99: 200ms                      # (3) how long callers may wait",
        "      tps_per_instance: 200",
    ]
    assert come == [
        "    instance_type: ml.c6i.4xlarge",
        "      p99: 150ms                      # (3) how long callers may wait",
        "      tps_per_instance: 212.5",
        "    instances:",
        "      max: 20",
    ]
    assert "-    instance_type: ml.m5.12xlarge\n+    instance_type: ml.c6i.4xlarge\n" in edit.diff()
    assert edit.diff().startswith(f"--- {SHIPPED}\n+++ {SHIPPED} (changed)\n@@ ")


@pytest.mark.parametrize(
    ("text", "place", "value", "expected"),
    [
        ("a: 1  # one\n", ("a",), 2, "a: 2  # one\n"),
        ("a: 1 # tight\n", ("a",), 2, "a: 2 # tight\n"),
        ("a: 1       # column 11\n", ("a",), "longer", "a: longer  # column 11\n"),
        ("a: 1  # column 6\n", ("a",), "longer", "a: longer # column 6\n"),
        ("a: '1'\nb: 2", ("a",), "x", "a: 'x'\nb: 2"),
        ("a: '1'\nb: 2", ("a",), 2, "a: 2\nb: 2"),
        ("a:\nb: 2\n", ("a",), 1, "a: 1\nb: 2\n"),
        ("a:   # why\nb: 2\n", ("a",), 1, "a: 1 # why\nb: 2\n"),
        ("a:   # why\nb: 2\n", ("a", "x"), 1, "a:   # why\n  x: 1\nb: 2\n"),
        ("a: ~\nb: 2\n", ("a", "x", "y"), 1, "a:\n  x:\n    y: 1\nb: 2\n"),
        ("a: {b: 1, c: 2}  # flow\n", ("a", "b"), 10, "a: {b: 10, c: 2} # flow\n"),
        ("a: {b: 1}\n", ("a", "c", "d"), 2, "a: {b: 1, c: {d: 2}}\n"),
        ("a: {}\n", ("a", "c"), 2, "a:\n  c: 2\n"),
        ("a: {b: null}\n", ("a", "b", "c"), 2, "a: {b: {c: 2}}\n"),
        (
            "a:\n  b: 1\n  # end of a\n\n# about z\nz: 1\n",
            ("a", "c"),
            2,
            "a:\n  b: 1\n  c: 2\n  # end of a\n\n# about z\nz: 1\n",
        ),
        ("a:\n  b: 1   # last", ("a", "c"), 2, "a:\n  b: 1   # last\n  c: 2"),
        ("a:\n  b: |\n    text\n\nz: 1\n", ("a", "c"), 2, "a:\n  b: |\n    text\n  c: 2\n\nz: 1\n"),
        ("a:\n  - b: 1\n  - b: 2  # two\n", ("a", 1, "b"), 3, "a:\n  - b: 1\n  - b: 3  # two\n"),
        ("a:\n- b: 1\nz: 1\n", ("a", 0, "c"), 3, "a:\n- b: 1\n  c: 3\nz: 1\n"),
        ("a: 1\r\nb: {c: 2}\r\n", ("d",), True, "a: 1\r\nb: {c: 2}\r\nd: true\r\n"),
        ("\ufeffa: 1\n", ("a",), 2, "\ufeffa: 2\n"),
        ("a: 1\n", ("a",), "1", 'a: "1"\n'),
        ("a: 1\n", ("a",), True, "a: true\n"),
        ("a: no\n", ("a",), "a: b # c", "a: 'a: b # c'\n"),
        ("---\na: 1\n", ("b", "c"), 1, "---\na: 1\nb:\n  c: 1\n"),
        (
            "a:\n   - b:\n        c: 1\n",
            ("a", 0, "b", "d"),
            2,
            "a:\n   - b:\n        c: 1\n        d: 2\n",
        ),
        (
            "a:\n    b:\n      - c: 1\n",
            ("a", "d", "e"),
            2,
            "a:\n    b:\n      - c: 1\n    d:\n        e: 2\n",
        ),
        (
            "base: &base {x: 1}\na:\n  <<: *base\n",
            ("a", "x"),
            2,
            "base: &base {x: 1}\na:\n  <<: *base\n  x: 2\n",
        ),
        (
            "base: &base {x: 1}\na: {<<: *base}\n",
            ("a", "x"),
            2,
            "base: &base {x: 1}\na: {<<: *base, x: 2}\n",
        ),
    ],
)
def test_one_value(text: str, place: tuple[Any, ...], value: Any, expected: str) -> None:
    assert edited_yaml(text, {place: value}).after == expected


def test_a_value_that_stands_there_already_changes_nothing() -> None:
    edit = edited_yaml("a: 200.0  # as measured\n", {("a",): 200})
    assert not edit.changed
    assert edit.diff() == ""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: &one 1\nb: *one\n", ("a",)),  # b would change too
        ("a: &one {x: 1}\nb: *one\n", ("b", "x")),  # a would change too
        ("base: &base {t: {x: 1, y: 2}}\na:\n  <<: *base\n", ("a", "t", "x")),  # y would go
        ("a: [1, 2]\n", ("a",)),
        ("a: {b: 1}\n", ("a",)),
        ("a: 1\n", ("a", "b")),
        ("a: [1]\n", ("a", 1)),
        ("a: [{b: 1}]\n", ("a", "b")),
        ("a: |\n  text\n", ("a",)),
        ("x: &x {y: 1}\na: {<<: *x, <<: *x}\n", ("b",)),  # which ruamel.yaml does not read
        ("a: # why\n  \n\n |\n\n\n", ("b",)),  # neither with its comment
        ("a: 1\r\nb: 2\n", ("a",)),  # line ends of two kinds
        ("# only a comment\n", ("a",)),
        ("", ("a",)),
    ],
)
def test_what_cannot_be_set_alone_is_refused(text: str, place: tuple[Any, ...]) -> None:
    with refused("LLE937"):
        edited_yaml(text, {place: 7})


@pytest.mark.parametrize(
    ("text", "line", "kept"),
    [
        ("a: 1\nb: [1,2]\n", "line 2: 'b: [1,2]'", "'b: [1, 2]'"),
        ("a:  1\n", "line 1: 'a:  1'", "'a: 1'"),
        ("a:\n  b: 1\n    \n  c: 2\n", "line 3: '    '", "''"),
        ("{a: 1}\n\n", "line 3: ''", "no such line"),
        ("a:  # why\n  \n  b: 1\n", "line 2: '  '", "no such line"),
        ("a: 1\nb: long\n  text\n", "line 2: 'b: long'", "'b: long text'"),
        ("a: 1\nb:\n    c: {}\n\nd:\n  e: 1\n", "line 6: '  e: 1'", "'    e: 1'"),
    ],
)
def test_a_file_of_another_layout_is_refused_and_its_line_named(
    text: str, line: str, kept: str
) -> None:
    with refused("LLE939", "set by hand z: 7", got=line, allowed=kept):
        edited_yaml(text, {("z",): 7})


def test_text_that_is_no_yaml() -> None:
    with pytest.raises(SettingsError):
        edited_yaml("a: [1\n", {("a",): 7})


# --- the repository's files --------------------------------------------------------------------
FILES = [
    SHIPPED,
    *(REPOSITORY / "examples").glob("*.yaml"),
    *(REPOSITORY / "constructs/low_latency_endpoint/cli/init_templates").glob("*.yaml"),
]


def places(values: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Each value that stands alone, and a new key at the end of each mapping."""
    if isinstance(values, dict):
        yield (*place, "new")
        for key, below in values.items():
            yield from places(below, (*place, key))
    elif isinstance(values, list):
        for number, below in enumerate(values):
            yield from places(below, (*place, number))
    elif values is not None:
        yield place


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_value_of_the_repositorys_files(path: Path) -> None:
    text = path.read_text("utf-8")
    for place in places(parse_yaml(text).values):
        after = edited_yaml(text, {place: "another"}).after
        assert valued(parse_yaml(after).values, place) == "another"
        assert only_its_lines_differ(text, after), after


# --- any file ----------------------------------------------------------------------------------
KEYS = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.one_of(
    st.sampled_from([1, 0.5, True, "text", "200ms", "1.10", None]),
    st.text("ab:#{}[],&*!|>'\"%@` -\n", max_size=6),
)
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS,
        lambda below: st.one_of(
            st.lists(below, max_size=2), st.dictionaries(KEYS, below, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)
VALUES = st.one_of(
    st.sampled_from([1, 0.25, False, "ml.c6i.large", "5m", "no", "1e3"]),
    st.text("ab:#{}[],&*!|>'\"%@` -\n\t\x85é", max_size=6),
)


def settable(values: Any, place: tuple[str, ...]) -> bool:
    """Whether there is a mapping, or nothing yet, all the way, and no collection at its end."""
    for key in place:
        if not isinstance(values, dict) and values is not None:
            return False
        values = (values or {}).get(key)
    return not isinstance(values, dict | list)


@given(
    TREES,
    st.lists(KEYS, min_size=1, max_size=3).map(tuple),
    VALUES,
    st.sampled_from([False, None]),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(2, 5),
)
def test_any_file(
    tree: Any, place: tuple[str, ...], value: Any, flow: bool | None, newline: str, indent: int
) -> None:
    """Only the lines of the one value differ, and each comment is still there; or it is refused."""
    plain = yaml.safe_dump(
        tree, default_flow_style=flow, allow_unicode=True, indent=indent, width=10**6
    )
    commented = "\n".join(
        f"{line}  # comment {number}\n\n# comment {number}000"
        if line.rstrip().endswith((":", "1", "true", "ms"))
        else line
        for number, line in enumerate(plain.split("\n"))
    )
    text = next(
        candidate
        for candidate in (commented, plain)
        if parse_yaml(candidate).values == parse_yaml(plain).values
    )
    text = text.replace("\n", newline)
    source = parse_yaml(text)
    if source.problems:
        return
    try:
        after = edited_yaml(text, {place: value}).after
    except ConfigurationError as error:
        event(error.code)
        assert error.code == "LLE939" or not settable(source.values, place)  # noqa: PT017
        return
    assert valued(parse_yaml(after).values, place) == value
    lines_of_old = 1 + 2 * str(valued(source.values, place)).count("\n")
    assert only_its_lines_differ(text, after, most=lines_of_old), after


# --- writing -----------------------------------------------------------------------------------
@pytest.fixture
def copy(tmp_path: Path) -> Path:
    path = tmp_path / "endpoint.yaml"
    path.write_text(SHIPPED.read_text())
    return path


def test_written_whole_with_its_mode_and_through_a_link(copy: Path, tmp_path: Path) -> None:
    copy.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(copy)
    write_edit(edit_settings_file(link, {(*SENTIMENT, "instance_type"): "ml.c6i.4xlarge"}))
    assert link.is_symlink()
    assert copy.stat().st_mode & 0o777 == 0o640
    assert load_settings(copy).endpoints["sentiment"].instance_type == "ml.c6i.4xlarge"
    assert sorted(os.listdir(tmp_path)) == ["endpoint.yaml", "link.yaml"]


def test_a_file_changed_meanwhile_is_not_overwritten(copy: Path) -> None:
    edit = edit_settings_file(copy, {(*SENTIMENT, "instance_type"): "ml.c6i.4xlarge"})
    copy.write_text("# mine\n")
    with refused("LLE938"):
        write_edit(edit)
    assert copy.read_text() == "# mine\n"


CHANGE = {(*SENTIMENT, "instance_type"): "ml.c6i.4xlarge"}


def test_a_read_only_file_is_refused(copy: Path) -> None:
    before = copy.read_bytes()
    copy.chmod(0o444)
    with refused("LLE936") as caught:
        write_edit(edit_settings_file(copy, CHANGE))
    assert "read-only (mode 444)" in str(caught.value)
    assert "cannot be written" in str(caught.value)
    assert copy.read_bytes() == before
    assert os.listdir(copy.parent) == [copy.name]


def test_the_owner_stays_and_so_do_hard_links(copy: Path) -> None:
    if os.geteuid() == 0:  # nobody else may give files away
        os.chown(copy, 12345, 54321)
    owner = copy.stat().st_uid, copy.stat().st_gid
    other = copy.with_name("other.yaml")
    other.hardlink_to(copy)
    write_edit(edit_settings_file(copy, CHANGE))
    assert other.samefile(copy)
    assert "ml.c6i.4xlarge" in other.read_text(encoding="utf-8")
    other.unlink()
    write_edit(edit_settings_file(copy, {(*SENTIMENT, "instance_type"): "ml.c6i.8xlarge"}))
    assert (copy.stat().st_uid, copy.stat().st_gid) == owner
    assert os.listdir(copy.parent) == [copy.name]


@pytest.mark.parametrize("linked", [False, True])
def test_a_full_disk_leaves_the_file_as_it_was(copy: Path, linked: bool) -> None:
    """The limit of the process for its files stands for the disk's."""
    if linked:
        copy.with_name("other.yaml").hardlink_to(copy)
    before, names = copy.read_bytes(), sorted(os.listdir(copy.parent))
    edit = edit_settings_file(copy, CHANGE)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with refused("LLE936", "File too large"):
            write_edit(edit)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert copy.read_bytes() == before
    assert sorted(os.listdir(copy.parent)) == names


def test_settings_that_would_not_hold_are_refused_before_writing(copy: Path) -> None:
    change = {(*SENTIMENT, "throughput", "tps_per_instance"): -1}
    found = problems(copy, lambda path: edit_settings_file(path, change))
    assert [code for _, code in found] == ["LLE603"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    found = problems(tmp_path / "none.yaml", lambda path: edit_settings_file(path, {}))
    assert found == [(1, "LLE901")]
