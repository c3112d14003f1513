"""Two builds of a commit are the same bytes, and hold what the commit has."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile

import pytest

from release.building import FIRST, SECOND, build, sums_of
from release.contents import check_contents
from release.repository import LIBRARY, LOCAL_AWS, PROJECTS, ROOT, Refused


def test_two_builds_have_nothing_in_common_but_the_commit():
    for name in ("folder", "umask", "file_time", "time_zone", "hash_seed"):
        assert getattr(FIRST, name) != getattr(SECOND, name)


def test_they_are_the_same_bytes(dist, commit, tmp_path):
    first = sums_of(dist)
    assert len(first) == 4
    assert build(commit, tmp_path, SECOND) == first


def test_they_hold_the_commits_files(dist, commit):
    for project in PROJECTS:
        assert len(check_contents(project, dist / project.name, commit)) == 2


def test_both_have_the_same_licence():
    """A file in each: a link out of local_sagemaker/ would lead nowhere in its sdist."""
    theirs = ROOT / "local_sagemaker" / "LICENSE"
    assert not theirs.is_symlink()
    assert theirs.read_bytes() == (ROOT / "LICENSE").read_bytes()


def rewritten(dist, project, folder, change):
    """The distribution with another wheel, whose RECORD is right."""
    (wheel,) = (dist / project.name).glob("*.whl")
    (source,) = (dist / project.name).glob("*.tar.gz")
    (folder / source.name).write_bytes(source.read_bytes())
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    (record,) = (name for name in files if name.endswith("/RECORD"))
    lines = io.StringIO()
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        csv.writer(lines).writerow(
            [name, *([f"sha256={digest}", len(content)] if name != record else ["", ""])]
        )
    files[record] = lines.getvalue().encode()
    with zipfile.ZipFile(folder / wheel.name, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return folder


def metadata(files):
    (name,) = (name for name in files if name.endswith("/METADATA"))
    return name


def without_types(files):
    del files["local_sagemaker/py.typed"]


def with_tests(files):
    files["local_sagemaker/tests/test_a.py"] = b""


def without_licence(files):
    (name,) = (name for name in files if name.endswith("/LICENSE"))
    del files[name]


def with_a_bad_requirement(files):
    name = metadata(files)
    files[name] = files[name].replace(
        b"Requires-Dist: boto3>=1.40", b"Requires-Dist: boto3 => 1.40"
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (without_types, "py.typed is missing"),
        (with_tests, "test_a.py is not of the package"),
        (without_licence, "the licence is missing"),
        (with_a_bad_requirement, "metadata: .*requires-dist"),
    ],
)
def test_what_is_wrong_with_a_wheel_is_said(dist, commit, tmp_path, change, problem):
    folder = rewritten(dist, LOCAL_AWS, tmp_path, change)
    with pytest.raises(Refused, match=problem):
        check_contents(LOCAL_AWS, folder, commit)


def test_a_wheel_of_another_commit_is_told(dist, tmp_path):
    """The library's package had other files in the first commit."""
    from release.repository import git

    first = git("rev-list", "--max-parents=0", "HEAD").splitlines()[0]
    with pytest.raises(Refused, match="is not of the package"):
        check_contents(LIBRARY, dist / LIBRARY.name, first)
