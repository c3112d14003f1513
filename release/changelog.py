"""``CHANGELOG.md`` in the form of Keep a Changelog, and the notes of a release from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from packaging.version import InvalidVersion, Version

from .repository import Refused

UNRELEASED = "Unreleased"
#: https://keepachangelog.com/en/1.1.0/
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")

_HEADING = re.compile(r"^## (?:\[(?P<linked>[^\]]+)\]|(?P<plain>\S+))(?: - (?P<day>\S+))?\s*$")


@dataclass(frozen=True)
class Section:
    """What one version changes.

    Parameters
    ----------
    version
        The version, or ``Unreleased``.
    day
        When it was released; None for what is not.
    text
        Everything below its heading.
    """

    version: str
    day: date | None
    text: str


def sections_of(text: str) -> list[Section]:
    """The versions of a changelog, the newest first.

    Raises
    ------
    Refused
        With each line that is not in the form.

    Examples
    --------
    >>> sections_of("# Changelog\\n\\n## 0.1.0 - 2026-12-01\\n\\n### Added\\n\\n- All of it.\\n")
    [Section(version='0.1.0', day=datetime.date(2026, 12, 1), text='### Added\\n\\n- All of it.')]
    """
    parts = re.split(r"(?m)^(?=## )", text)[1:]
    found: list[Section] = []
    problems: list[str] = []
    for part in parts:
        heading, _, body = part.partition("\n")
        try:
            found.append(_section(heading, body.strip()))
        except ValueError as error:
            problems.append(f"{heading}: {error}")
        problems += [f"{heading}: {problem}" for problem in _problems(body)]
    problems += _order(found)
    if problems or not found:
        raise Refused("CHANGELOG.md: " + ("; ".join(problems) or "no version"))
    return found


def _section(heading: str, body: str) -> Section:
    matched = _HEADING.match(heading)
    if not matched:
        raise ValueError("not of the form `## 0.1.0 - 2026-12-01`")
    version = matched["linked"] or matched["plain"]
    if version == UNRELEASED:
        return Section(version, None, body)
    try:
        Version(version)
    except InvalidVersion:
        raise ValueError(f"{version} is no version") from None
    if not matched["day"]:
        raise ValueError("a released version has its day")
    return Section(version, date.fromisoformat(matched["day"]), body)


def _problems(body: str) -> Iterator[str]:
    kinds = re.findall(r"(?m)^### (.*?)\s*$", body)
    yield from (
        f"`### {kind}` is none of {', '.join(KINDS)}" for kind in kinds if kind not in KINDS
    )
    yield from (
        f"`### {kind}` stands twice" for kind in sorted({k for k in kinds if kinds.count(k) > 1})
    )


def _order(sections: list[Section]) -> Iterator[str]:
    released = [Version(each.version) for each in sections if each.version != UNRELEASED]
    if released != sorted(set(released), reverse=True):
        yield "versions stand once each, the newest first"
    if UNRELEASED in [each.version for each in sections[1:]]:
        yield f"{UNRELEASED} comes first"


def notes_of(text: str, version: str, *, released: bool) -> str:
    """The notes of a release: its section.

    Parameters
    ----------
    released
        Whether the section has to have the version's name. Before a release the changes stand
        under ``Unreleased``.

    Raises
    ------
    Refused
        When there is no such section, or nothing in it.
    """
    wanted = [version] if released else [version, UNRELEASED]
    for section in sections_of(text):
        if section.version in wanted:
            if not section.text:
                raise Refused(f"CHANGELOG.md says nothing of {section.version}")
            return section.text + "\n"
    raise Refused(
        f"CHANGELOG.md has no section for {version}: rename `## {UNRELEASED}` to "
        f"`## {version} - YEAR-MONTH-DAY`"
    )
