"""A release up to the point where it would leave this machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

from .building import FIRST, build, build_twice
from .changelog import notes_of
from .contents import check_contents
from .repository import LIBRARY, PROJECTS, ROOT, Refused, clone, tag_before, version_of_release
from .sbom import write_sbom
from .site import BUNDLE, write_site_bundle
from .upgrade import first_release, upgrade_page

PAGE = "UPGRADE.md"
NOTES = "NOTES.md"
#: Steps of `.github/workflows/release.yml` that this cannot try: it has neither GitHub's identity
#: token nor a network.
NOT_DONE = (
    "attest the files (GitHub's artifact attestations): needs the workflow's identity token",
    "publish to PyPI, with attestations (PEP 740): needs PyPI's trust in this workflow",
    "make the release on GitHub: needs the right to write contents",
    "push the docs site: needs the same right",
)


def notes(tag: str) -> str:
    """The notes of the tagged version; without a tag those of what stands on the branch.

    Raises
    ------
    Refused
        When the tag is not the version that the distributions state, or without its section.
    """
    version = version_of_release(ROOT)
    if tag and tag != f"v{version}":
        raise Refused(f"the tag is {tag}, but the distributions say {version}: tag v{version}")
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return notes_of(text, version, released=bool(tag))


def dry_run(dist: Path, commit: str, tag: str) -> None:
    """Make every file of a release and say what was not done.

    Parameters
    ----------
    dist
        Gets a folder for each distribution, their SBOMs, the notes, the upgrade page and the docs
        site.
    tag
        The tag that is released. Without one, ``Unreleased`` of the changelog is the notes.
    """
    dist.mkdir(parents=True, exist_ok=True)
    said = notes(tag)
    (dist / NOTES).write_text(said, encoding="utf-8")
    print(f"Notes: {len(said.splitlines())} lines of CHANGELOG.md, in Keep a Changelog's form")

    for name, digest in build_twice(commit, dist).items():
        print(f"{digest}  {name}")
    print("Two builds from two clones: the same bytes")

    for project in PROJECTS:
        for line in check_contents(project, dist / project.name, commit):
            print(line)
        (wheel,) = (dist / project.name).glob("*.whl")
        target = dist / f"{project.name}.cdx.json"
        print(f"{target.name}: CycloneDX, {write_sbom(project, wheel, target)} packages")

    print(_write_upgrade_page(dist, commit))
    print(f"{BUNDLE}: the docs site with version {write_site_bundle(commit, dist / BUNDLE)}")
    print("\nNot done here:")
    for line in NOT_DONE:
        print(f"- {line}")


def _write_upgrade_page(dist: Path, commit: str) -> str:
    before = tag_before(commit)
    target = dist / PAGE
    if before is None:
        target.write_text(first_release(version_of_release(ROOT)), encoding="utf-8")
        return f"{PAGE}: no earlier release to compare with"
    (new_wheel,) = (dist / LIBRARY.name).glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        folder = Path(name)
        build(before, folder / "dist", FIRST)
        (old_wheel,) = (folder / "dist" / LIBRARY.name).glob("*.whl")
        clone(before, folder / "old")
        clone(commit, folder / "new")
        text = upgrade_page(old_wheel, new_wheel, folder / "old", folder / "new")
    target.write_text(text, encoding="utf-8")
    return f"{PAGE}: compared with {before}"
