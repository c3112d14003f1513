"""Whether rights are judged: of each server of this process, as `RuntimeOptions.permissions` says."""

from __future__ import annotations

from urllib.parse import urlsplit

DENIED_OBJECTS = "local_sagemaker.denied_objects"
"""Where a DeleteObjects request has the ARNs of those that its caller may not delete."""

_lenient: set[int] = set()


def ignore_at(port: int, ignores: bool) -> None:
    """Note whether the server at a port ignores permissions."""
    (_lenient.add if ignores else _lenient.discard)(port)


def is_enforced(url: str | None = None) -> bool:
    """Whether the server at a URL judges rights; without one, whether all of this process do."""
    return not _lenient if url is None else (urlsplit(url).port or 80) not in _lenient
