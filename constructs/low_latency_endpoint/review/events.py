"""What GitHub says of the run: its event, its repository, where to write."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import rule

EVENT = rule(
    "LLE981",
    "GitHub's event cannot be read",
    fix="Run in a GitHub workflow; elsewhere leave --post out and name --base.",
    source="https://docs.github.com/actions/reference/workflows-and-actions/events-that-trigger-workflows",
)
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_NO_COMMIT = "0" * 40


@dataclass(frozen=True)
class Event:
    """Why a workflow runs.

    Attributes
    ----------
    name : str
        Such as ``pull_request``.
    repository : str
        Owner and name of the repository that the pull request is opened in.
    number : int or None
        Of the pull request; ``None`` for events of no pull request.
    base_name : str
        The branch it is to be merged into, in words.
    base_sha, head_sha : str
        What was there before and what is there now; empty where GitHub does not say.
    fork : bool
        Whether the pull request comes from another repository.
    """

    name: str
    repository: str
    number: int | None = None
    base_name: str = ""
    base_sha: str = ""
    head_sha: str = ""
    fork: bool = False


def current_event(environment: Mapping[str, str] = os.environ) -> Event | None:
    """The event of the workflow that this runs in; ``None`` outside of one.

    Raises
    ------
    ConfigurationError
        ``LLE981`` when its file or the repository's name is not as GitHub writes it.
    """
    path = environment.get("GITHUB_EVENT_PATH")
    if not path:
        return None
    name = environment.get("GITHUB_EVENT_NAME", "")
    repository = environment.get("GITHUB_REPOSITORY", "")
    try:
        found = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise EVENT.error(got=f"{path}: {error}", allowed="a JSON object") from None
    if not isinstance(found, dict):
        raise EVENT.error(got=path, allowed="a JSON object")
    if not _REPOSITORY.fullmatch(repository):
        raise EVENT.error(got=f"GITHUB_REPOSITORY={repository!r}", allowed="owner/name")
    if isinstance(request := found.get("pull_request"), dict):
        base, head = _inner(request, "base"), _inner(request, "head")
        number = request.get("number")
        if not isinstance(number, int):
            raise EVENT.error(got=f"number {number!r}", allowed="the pull request's number")
        return Event(
            name,
            repository,
            number,
            _text(base, "ref"),
            _text(base, "sha"),
            _text(head, "sha"),
            _text(_inner(head, "repo"), "full_name") != repository,
        )
    if isinstance(group := found.get("merge_group"), dict):
        branch = _text(group, "base_ref").removeprefix("refs/heads/")
        shas = _text(group, "base_sha"), _text(group, "head_sha")
        return Event(name, repository, None, branch, *shas)
    before = _text(found, "before")
    branch = _text(found, "ref").removeprefix("refs/heads/")
    before = "" if before == _NO_COMMIT else before
    return Event(name, repository, None, f"{branch} before the push", before, _text(found, "after"))


def _inner(value: dict[str, Any], name: str) -> dict[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _text(value: dict[str, Any], name: str) -> str:
    inner = value.get(name)
    return inner if isinstance(inner, str) else ""
