"""The changelog's form, and the notes of a release from it."""

from __future__ import annotations

import pytest

from release.changelog import notes_of, sections_of
from release.repository import ROOT, Refused

CHANGELOG = """# Changelog

Versions follow Semantic Versioning.

## Unreleased

### Fixed

- A crash.

## 0.2.0 - 2026-12-24

### Changed

- A name.

## [0.1.0] - 2026-12-01

### Added

- All of it.
"""


def test_ours_is_in_the_form():
    sections = sections_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert all(section.text for section in sections)


def test_a_release_has_its_own_section():
    assert notes_of(CHANGELOG, "0.2.0", released=True) == "### Changed\n\n- A name.\n"
    assert notes_of(CHANGELOG, "0.1.0", released=True) == "### Added\n\n- All of it.\n"


def test_before_a_release_it_is_what_is_unreleased():
    assert notes_of(CHANGELOG, "0.3.0", released=False) == "### Fixed\n\n- A crash.\n"


def test_a_release_without_a_section_is_refused():
    with pytest.raises(Refused, match=r"rename `## Unreleased` to `## 0\.3\.0 - "):
        notes_of(CHANGELOG, "0.3.0", released=True)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("0.2.0 - 2026-12-24", "0.2.0", "has its day"),
        ("0.2.0 - 2026-12-24", "0.2.0 - 2026-13-24", "month"),
        ("0.2.0 - 2026-12-24", "0.2.x - 2026-12-24", "no version"),
        ("0.2.0 - 2026-12-24", "0.0.9 - 2026-12-24", "newest first"),
        ("0.2.0 - 2026-12-24", "version 0.2.0, yesterday", "not of the form"),
        ("### Fixed", "### Mended", "none of Added"),
        ("- A crash.", "- A crash.\n\n### Fixed\n\n- Two.", "stands twice"),
        ("## Unreleased", "## 0.3.0 - 2027-01-01\n\n### Added\n\n- B.\n\n## Unreleased", "first"),
    ],
)
def test_another_form_is_refused(old, new, problem):
    assert old in CHANGELOG
    with pytest.raises(Refused, match=problem):
        sections_of(CHANGELOG.replace(old, new))
