"""What of a commit comes onto the disk: the files that settings name, and never through a link."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as runs
from hypothesis import strategies as st

from low_latency_endpoint.change import revisions
from low_latency_endpoint.change.file_review import review_files
from low_latency_endpoint.change.revisions import CommitFiles, Repository, WorkingTree
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.options.annotations import alternatives
from low_latency_endpoint.options.option import Options, groups_in, options_of
from low_latency_endpoint.settings import Settings
from tests.depth import examples

from .conftest import SHIPPED, Check, Checkout, settings

PRICES = (
    "item,region,usd,unit,published,version,read,source\n"
    "ml.m5.12xlarge,us-east-1,2,instance-hour,2026-09-20,1,2026-11-23,https://aws.amazon.com\n"
)
CONTAINER = SHIPPED["endpoints"]["sentiment"]["containers"][0]
WARM_UP = {"payload": {"file": "payload.json", "content_type": "application/json"}}
#: Settings that name files, by the option that does, and what is read for them.
NAMED: dict[str, tuple[str, dict[str, str]]] = {
    "prices": (settings({"prices": {"file": "prices.csv"}}), {"prices.csv": PRICES}),
    "WarmUpPayload.file": (settings(warm_up=WARM_UP), {"payload.json": "1"}),
    "ImageSettings.asset": (
        settings(containers=[{**CONTAINER, "image": {"asset": "image"}}]),
        {"image/Dockerfile": "FROM scratch\n", "image/below/a": "a"},
    ),
    "ModelDataSettings.asset": (
        settings(containers=[{**CONTAINER, "data": {"asset": "a/../a/model.tar.gz"}}]),
        {"a/model.tar.gz": "model"},
    ),
    "HuggingFaceSettings.lock": (
        settings(hugging_face={"model": "a/b", "lock": "locked.json"}),
        {"locked.json": "{}"},
    ),
}


def groups(kind: Any, seen: set[type[Options]]) -> Iterator[type[Options]]:
    """All classes of options that a settings file can have."""
    for group in {*groups_in(kind), *groups_in(getattr(kind, "written", None))} - seen:
        seen.add(group)
        yield group
        for option in options_of(group):
            for below in alternatives(option.kind):
                yield from groups(below, seen)


def test_every_option_that_names_a_file_is_among_them() -> None:
    """Add a case to NAMED for a new option whose kind is a path."""
    named = {
        f"{group.__name__}.{option.name}"
        for group in groups(Settings, set())
        for option in options_of(group)
        if option.option is not None and Path in alternatives(option.kind)
    }
    assert named == NAMED.keys() - {"prices"}


#: Words in the name of an option that is a path, or a pattern of paths.
OF_PATHS = re.compile(r"(?:^|_)(?:file|path|folder|directory|lock|asset|exclude|include|code)s?$")
#: Those that another option's folder keeps.
BELOW = ("ImageSettings.file",)


def test_every_text_that_is_a_path_says_which_folder_it_is_taken_from() -> None:
    """Make the option's kind a path, or state ``below``, which keeps it in another one's folder."""
    texts = {
        f"{group.__name__}.{option.name}": option.option.below
        for group in groups(Settings, set())
        for option in options_of(group)
        if option.option is not None and OF_PATHS.search(option.name)
        if str in alternatives(option.kind) and Path not in alternatives(option.kind)
    }
    assert {name for name, folder in texts.items() if folder} == set(BELOW)
    assert [name for name, folder in texts.items() if folder is None] == []


#: Where a path may lead that a pull request states; the marker tells it from others.
OUT = (
    "/{marker}",
    "../../../../../../../../{marker}",
    "a/../../../../../../{marker}",
    "/proc/self/environ",
)


@pytest.mark.parametrize("out", OUT)
@pytest.mark.parametrize("option", [*NAMED, *BELOW])
@pytest.mark.parametrize("exists", [True, False])
def test_no_path_tells_what_the_machine_has(
    check: Check,
    checkout: Checkout,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    out: str,
    exists: bool,
) -> None:
    """The answer is the same whether the file is there, and the file is not even looked at."""
    marker = str(tmp_path / "marked" / "a.tar.gz").lstrip("/")
    if exists:
        (tmp_path / "marked").mkdir()
        (tmp_path / "marked" / "a.tar.gz").write_text("1")
    path = out.format(marker=marker)
    if option in BELOW:
        text, files = NAMED["ImageSettings.asset"]
        text = text.replace("asset: image", f"asset: image\n        file: {path}")
    else:
        text, files = NAMED[option]
        for name in ("prices.csv", "payload.json", "a/../a/model.tar.gz", "locked.json"):
            text = text.replace(name, path)
        text = text.replace("asset: image", f"asset: {path}")
    base, head = checkout.pull_request({"live/endpoint.yaml": text, **below(files)})
    asked: list[str] = []
    own = os.stat

    def noted(path: Any, **more: Any) -> os.stat_result:
        asked.append(str(path))
        return own(path, **more)

    monkeypatch.setattr(os, "stat", noted)
    answers = [check(f"{base}...{head}", "--settings", "live/endpoint.yaml")]
    assert not [path for path in asked if "marked" in path or "environ" in path]
    answers.append(check(base, "--settings", "live/endpoint.yaml"))  # there links are followed
    for answer in answers:
        assert (answer.code, "LLE983" in answer.out) == (1, True)


@pytest.mark.parametrize("stated", [True, False])
def test_a_dockerfile_that_is_a_link_out_of_the_checkout_is_refused(
    check: Check, checkout: Checkout, stated: bool
) -> None:
    text, files = NAMED["ImageSettings.asset"]
    dockerfile = (
        checkout.folder / "live/image/Other"
        if stated
        else checkout.folder / "live/image/Dockerfile"
    )
    if stated:
        text = text.replace("asset: image", "asset: image\n        file: Other")
    base, _ = checkout.pull_request({"live/endpoint.yaml": text, **below(files)})
    dockerfile.unlink(missing_ok=True)
    dockerfile.symlink_to("/etc/hostname")
    answer = check(base, "--settings", "live/endpoint.yaml")
    assert (answer.code, "LLE983" in answer.out) == (1, True)


def files_below(folder: Path) -> dict[str, str]:
    """The files of a folder, as no link is made there."""
    paths = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    assert not [path for path in paths if path.is_symlink()]
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


@pytest.mark.parametrize("option", NAMED)
def test_what_settings_name_is_read_and_nothing_else(checkout: Checkout, option: str) -> None:
    text, files = NAMED[option]
    others = {f"other-{number}": "other" for number in range(50)}
    commit = checkout.commit({"live/endpoint.yaml": text, **below(files), **below(others)})
    repository = Repository.around(checkout.folder)
    with repository.files_of(commit) as there:
        review_files(["live/endpoint.yaml"], there, WorkingTree(repository.root))
        assert files_below(there.folder) == {"live/endpoint.yaml": text, **below(files)}


def below(files: dict[str, str]) -> dict[str, Any]:
    return {f"live/{name}": text for name, text in files.items()}


@pytest.mark.parametrize("option", NAMED)
@pytest.mark.parametrize("link", ["file", "folder"])
def test_links_that_settings_name_are_refused(
    check: Check, checkout: Checkout, option: str, link: str
) -> None:
    """Also those that stay in the repository: the same answer whatever they lead to."""
    text, files = NAMED[option]
    checkout.commit({f"live/{name}": content for name, content in files.items()})
    live = checkout.folder / "live"
    if link == "folder":
        live.rename(checkout.folder / "kept")
        live.symlink_to("kept")
        text = text.replace("a/../a/model", "a/model")
        for name in ("prices.csv", "payload.json", "a/model.tar.gz", "locked.json"):
            text = text.replace(name, f"live/{name}")
        text = text.replace("asset: image", "asset: live/image")
        where = "endpoint.yaml"
    else:
        for name in files:
            path = live / name
            path.rename(path.with_name(f"kept-{path.name}"))
            path.symlink_to(f"kept-{path.name}")
        where = "live/endpoint.yaml"
    base, head = checkout.pull_request({where: text})
    answer = check(f"{base}...{head}", "--settings", where)
    assert (answer.code, "LLE983" in answer.out) == (1, True)
    assert "not through a symbolic link" in answer.out


@pytest.mark.parametrize("option", ["ImageSettings.asset", "WarmUpPayload.file"])
def test_submodules_that_settings_name_are_refused(
    check: Check, checkout: Checkout, option: str
) -> None:
    """What is in it, only another repository knows; and it is no file that a pattern means."""
    text, files = NAMED[option]
    checkout.commit({"live/endpoint.yaml": text, **below(files)})
    (name, *_) = files
    module = "live/image/code" if option == "ImageSettings.asset" else f"live/{name}"
    for sha in ("1" * 40, "2" * 40):
        checkout.git("update-index", "--add", "--cacheinfo", f"160000,{sha},{module}")
        checkout.git("commit", "--quiet", "-m", "A submodule")
    answer = check("HEAD~1...HEAD", "--settings", "live/endpoint.yaml")
    assert (answer.code, "LLE983" in answer.out) == (1, True)
    with Repository.around(checkout.folder).files_of("HEAD") as there:
        assert module not in there.matching("live/**/*")


@pytest.mark.parametrize("folder", ["image", "prices"])
def test_folders_too_deep_for_a_disk_are_refused(
    check: Check, checkout: Checkout, folder: str
) -> None:
    """Below an asset, and on the way to a file: 1,500 folders end Python's recursion."""
    image = {**CONTAINER, "image": {"asset": "image"}}
    prices = {"file": "a/" * 1500 + "../" * 1500 + "prices.csv"}
    text = {"image": settings(containers=[image]), "prices": settings({"prices": prices})}[folder]
    checkout.commit({"image/Dockerfile": "FROM scratch", "prices.csv": PRICES})
    tree = raw_tree(checkout, [("100644", "f", made(checkout, b"f"))])
    for _ in range(1500):
        tree = raw_tree(checkout, [("40000", "a", tree)])
    entries = [
        ("40000", "a" if folder == "prices" else "image", tree),
        ("100644", "endpoint.yaml", made(checkout, text.encode())),
        ("100644", "prices.csv", made(checkout, PRICES.encode())),
    ]
    commit = checkout.git("commit-tree", "-m", "Deep", "-p", "HEAD", raw_tree(checkout, entries))
    answer = check(f"main..{commit}")
    assert (answer.code, answer.out, answer.err[:8]) == (2, "", "LLE980: ")
    assert "folders deep" in answer.err


#: What a checkout does to bytes, by the line of a .gitattributes after the file's pattern.
REWRITTEN = ("working-tree-encoding=CP1252", "filter=lfs", "ident", "text eol=crlf")
KEPT = ("text", "text=auto", "-text", "text eol=lf", "-filter", "!ident", "diff=yaml", "binary")


@pytest.mark.parametrize("option", NAMED)
@pytest.mark.parametrize("attribute", [*REWRITTEN, *KEPT])
def test_files_that_a_checkout_rewrites_are_refused(
    check: Check, checkout: Checkout, option: str, attribute: str
) -> None:
    """A deployment reads them from a checkout, and not what Git has."""
    text, files = NAMED[option]
    attributes = (
        f"[attr]macro {attribute}\n* macro\nendpoint.yaml !macro {_unspecified(attribute)}\n"
    )
    commit = {**below(files), "live/endpoint.yaml": text, "live/other": "1"}
    checkout.commit(commit | {".gitattributes": attributes})
    refused = attribute in REWRITTEN
    answer = check("main...HEAD", "--settings", "live/endpoint.yaml")
    assert ("LLE998" in answer.out) == refused, answer
    assert answer.code == refused or "LLE998" not in answer.out


def _unspecified(attribute: str) -> str:
    """The same attributes taken back."""
    names = [word.lstrip("-!").partition("=")[0] for word in attribute.split()]
    return " ".join(f"!{name}" for name in names)


@pytest.mark.parametrize("attribute", REWRITTEN)
@pytest.mark.parametrize("where", [".gitattributes", "live/.gitattributes"])
def test_settings_that_a_checkout_rewrites_are_refused(
    check: Check, checkout: Checkout, attribute: str, where: str
) -> None:
    """By what the commit itself says, whatever lies in the checkout."""
    base, head = checkout.pull_request(
        {"live/endpoint.yaml": settings(), where: f"endpoint.yaml {attribute}\n"}
    )
    checkout.git("checkout", "--quiet", base)
    answer = check(f"{base}...{head}", "--settings", "live/endpoint.yaml")
    assert (answer.code, answer.err[:8]) == (2, "LLE998: ")
    other = check(f"{base}...{head}", "--settings", "live/other.yaml")
    assert "LLE998" not in other.err + other.out


def test_attributes_of_other_files_are_theirs(check: Check, checkout: Checkout) -> None:
    checkout.commit({".gitattributes": "*.tar.gz filter=lfs diff=lfs merge=lfs -text\n"})
    assert check("main...HEAD").code == 0


def raw_tree(checkout: Checkout, entries: list[tuple[str, str, str]]) -> str:
    """A tree object with entries in any order, as nobody's Git would make it."""
    content = b"".join(
        f"{mode} {name}\0".encode() + bytes.fromhex(sha) for mode, name, sha in entries
    )
    return made(checkout, content, "-t", "tree", "--literally")


def made(checkout: Checkout, content: bytes, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "hash-object", "-w", *arguments, "--stdin"],
        cwd=checkout.folder,
        input=content,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


NAMES = st.sampled_from(["a", "b", "A", "..", ".", ".git", ".GIT", "x.yaml", "a\\b", "\u00e4"])
TARGETS = st.sampled_from(["{outside}", "a", "..", "../..", "b/..", "/etc/passwd", ".", "x.yaml"])
LEAVES = st.one_of(
    st.tuples(st.just("100644"), NAMES, st.just("content")),
    st.tuples(st.just("120000"), NAMES, TARGETS),
    st.tuples(st.just("160000"), NAMES, st.just("")),
)
TREES: Any = st.recursive(
    st.lists(LEAVES, max_size=3),
    lambda trees: st.lists(
        st.one_of(LEAVES, st.tuples(st.just("40000"), NAMES, trees)), min_size=1, max_size=4
    ),
    max_leaves=10,
)


def tree_of(checkout: Checkout, entries: list[Any], outside: Path) -> str:
    """The object of a drawn tree."""
    stored = []
    for mode, name, content in entries:
        if mode == "40000":
            sha = tree_of(checkout, content, outside)
        elif mode == "160000":
            sha = "1" * 40
        else:
            sha = made(checkout, content.format(outside=outside).encode())
        stored.append((mode, name, sha))
    return raw_tree(checkout, stored)


def outcome(there: CommitFiles, path: str) -> bool:
    try:
        return there.holds(there.folder / path)
    except ConfigurationError as error:
        assert error.code == "LLE980"  # noqa: PT017
        return False


@runs(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(entries=TREES)
def test_no_tree_writes_outside_of_its_folder(
    checkout: Checkout, tmp_path: Path, entries: list[Any]
) -> None:
    outside = tmp_path / "outside"
    (outside / "b").mkdir(parents=True, exist_ok=True)
    tree = tree_of(checkout, entries, outside)
    commit = checkout.git("commit-tree", "-m", "Odd", tree)
    paths = ["a/x.yaml", "a", "a/b", "a/../b", "..", "../x", "a/b/../..", "x.yaml", ""]
    try:
        with Repository.around(checkout.folder).files_of(commit) as there:
            held = {path for path in paths if outcome(there, path)}
            assert not held & {"..", "../x"}
            assert set(files_below(there.folder).values()) <= {"content"}
            assert sorted(os.listdir(there.folder.parent)) == ["files"]
    except ConfigurationError as error:
        assert error.code == "LLE980"  # noqa: PT017
    assert [path.name for path in outside.rglob("*")] == ["b"]


def test_a_link_and_a_folder_of_one_name_plant_no_link(
    check: Check, checkout: Checkout, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = ("120000", "planted", made(checkout, b"/etc/passwd"))
    shipped = ("100644", "endpoint.yaml", checkout.git("rev-parse", "HEAD:endpoint.yaml"))
    through = ("120000", "l", made(checkout, str(outside).encode()))
    folder = ("40000", "l", raw_tree(checkout, [link]))
    for entries in ([shipped, through, folder], [shipped, folder, through]):
        commit = checkout.git("commit-tree", "-m", "Odd", raw_tree(checkout, entries))
        answer = check(f"main...{commit}", "--fail-on", "refused")
        assert (answer.code, answer.err[:8]) == (2, "LLE980: ")
        assert not list(outside.iterdir())


def test_a_path_that_comes_twice_is_refused(check: Check, checkout: Checkout) -> None:
    shipped = ("100644", "endpoint.yaml", checkout.git("rev-parse", "HEAD:endpoint.yaml"))
    tree = raw_tree(checkout, [shipped, shipped])
    answer = check(checkout.git("commit-tree", "-m", "Odd", tree))
    assert (answer.code, "is there twice" in answer.err) == (2, True)


def test_patterns_mean_the_same_in_a_commit_and_on_the_disk(checkout: Checkout) -> None:
    names = [
        "a.yaml",
        ".b.yaml",
        "x/a.yaml",
        "x/y/a.yml",
        "x/y/[z].yaml",
        "a/x.yaml",
        "\u00e4.yaml",
    ]
    files: dict[str, str | None] = dict.fromkeys(names, "1")
    commit = checkout.commit(files)
    repository = Repository.around(checkout.folder)
    patterns = [
        "*.yaml",
        "**/*.yaml",
        "x/**/*",
        "x/*/*.y?ml",
        "x/y/[[]z].yaml",
        "./*.yaml",
        "?.yaml",
    ]
    patterns += ["*", "**/x/*.yaml", "[!a]*.yaml", "x*", "x/**/a.*", "**/**/a.*", "no/*.yaml"]
    with repository.files_of(commit) as there:
        tree = WorkingTree(repository.root)
        for pattern in patterns:
            on_disk = [name for name in tree.matching(pattern) if not name.startswith(".git/")]
            assert sorted(there.matching(pattern)) == sorted(on_disk), pattern


def test_folders_however_deep_end_no_pattern(checkout: Checkout) -> None:
    """Git itself goes 2,048 folders deep, Python's recursion a thousand."""
    shipped = checkout.git("rev-parse", "HEAD:endpoint.yaml")
    tree = raw_tree(checkout, [("100644", "f.txt", shipped)])
    for _ in range(1100):
        tree = raw_tree(checkout, [("40000", "a", tree)])
    tree = raw_tree(checkout, [("40000", "a", tree), ("100644", "endpoint.yaml", shipped)])
    commit = checkout.git("commit-tree", "-m", "Deep", tree)
    repository = Repository.around(checkout.folder)
    with repository.files_of(commit) as there:
        assert there.matching("**/**/**/*.yaml") == ["endpoint.yaml"]
        assert there.matching("**/a/**/f.*") == ["a/" * 1101 + "f.txt"]


def test_what_git_lacks_and_what_is_too_large_is_no_mistake_of_the_settings(
    check: Check, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check ends with an error, also where only a file of prices is too large."""
    text = settings({"prices": {"file": "prices.csv"}})
    base, head = checkout.pull_request({"endpoint.yaml": text, "prices.csv": PRICES * 100})
    monkeypatch.setattr(revisions, "_MOST_BYTES", len(text) + 1000)
    answer = check(f"{base}...{head}")
    assert (answer.code, answer.err[:8], answer.out) == (2, "LLE980: ", "")
    assert "at most" in answer.err
    monkeypatch.undo()
    monkeypatch.chdir(checkout.folder)
    sha = checkout.git("rev-parse", f"{head}:prices.csv")
    (checkout.folder / ".git/objects" / sha[:2] / sha[2:]).unlink()
    answer = check(f"{base}...{head}")
    assert (answer.code, answer.err[:8], "missing" in answer.err) == (2, "LLE980: ", True)


def test_a_tree_of_more_files_than_anybody_has_ends_early(
    check: Check, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten trees, each ten times in the next one, list ten thousand million files."""
    tree = raw_tree(checkout, [("100644", "f", made(checkout, b"f"))])
    for _ in range(10):
        tree = raw_tree(checkout, [("40000", str(number), tree) for number in range(10)])
    monkeypatch.setattr(revisions, "_MOST_FILES", 10_000)
    answer = check(checkout.git("commit-tree", "-m", "Odd", tree))
    assert (answer.code, "at most 10,000 files" in answer.err) == (2, True)


@pytest.mark.parametrize(("bytes_", "code"), [(4096, 0), (4097, 2)])
def test_a_path_that_no_checkout_has_is_refused(
    check: Check, checkout: Checkout, bytes_: int, code: int
) -> None:
    shipped = checkout.git("rev-parse", "HEAD:endpoint.yaml")
    below = raw_tree(
        checkout,
        [("100644", "\u00e4" * ((bytes_ - 1001) // 2) + "b" * ((bytes_ - 1001) % 2), shipped)],
    )
    entries = [("40000", "a" * 1000, below), ("100644", "endpoint.yaml", shipped)]
    commit = checkout.git("commit-tree", "-m", "Long", "-p", "main", raw_tree(checkout, entries))
    answer = check(f"main...{commit}")
    assert (answer.code, "at most 4,096 bytes" in answer.err) == (code, bool(code))


def test_paths_that_are_long_together_end_early(
    check: Check, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = raw_tree(
        checkout, [("100644", f"{number:04}", made(checkout, b"f")) for number in range(99)]
    )
    for _ in range(4):
        tree = raw_tree(checkout, [("40000", "n" * 900, tree)])
    monkeypatch.setattr(revisions, "_MOST_LISTED", 90 * 3600)
    answer = check(checkout.git("commit-tree", "-m", "Long", tree))
    assert (answer.code, "at most 324,000 characters" in answer.err) == (2, True)


@given(st.lists(st.text("a0-/.", min_size=1, max_size=6), max_size=12))
def test_what_is_in_a_folder_is_what_begins_with_it(drawn: list[str]) -> None:
    paths = sorted({path.strip("/") for path in drawn} - {""}, key=revisions._as_folder)
    there = CommitFiles(Path(), Repository(Path()), "", {}, {}, paths)
    for name in {*drawn, *paths, "a"} - {""}:
        assert list(there._below(name)) == [path for path in paths if path.startswith(f"{name}/")]


def test_names_that_are_not_text_and_other_repositories_are_passed_over(
    check: Check, checkout: Checkout
) -> None:
    shipped = checkout.git("rev-parse", "HEAD:endpoint.yaml")
    content = b"".join(
        [
            b"100644 \xff.txt\0" + bytes.fromhex(shipped),
            b"100644 Endpoint.yaml\0" + bytes.fromhex(shipped),
            b"100644 endpoint.yaml\0" + bytes.fromhex(shipped),
            b"160000 module\0" + b"\1" * 20,
        ]
    )
    tree = made(checkout, content, "-t", "tree", "--literally")
    answer = check(f"main...{checkout.git('commit-tree', '-m', 'Odd', '-p', 'main', tree)}")
    assert (answer.code, answer.err) == (0, "")
    assert "Nothing that is deployed changes" in answer.out


def test_objects_are_those_that_their_hashes_name(check: Check, checkout: Checkout) -> None:
    base, head = checkout.pull_request({"endpoint.yaml": settings(endpoint_name="mood")})
    checkout.git("replace", head, base)
    data = json.loads(check(f"{base}...{head}", "--json").out)
    assert [file["effect"] for file in data["files"]] == ["replaced"]


def test_what_was_read_is_gone_afterwards(
    check: Check, checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert check("main").code == 0
    left = [path.name for path in temporary.iterdir()]
    # The process keeps the functions' code, which is of the library, until it ends.
    assert [name for name in left if not name.startswith("warm_up_function-")] == []
