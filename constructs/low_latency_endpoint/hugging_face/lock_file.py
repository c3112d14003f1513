"""The lock file of models: read at synthesis without the network, written by ``low-latency pin``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from ..plan.hugging_face_rules import LOCK_FILE
from ..plan.pinned_jumpstart import (
    PinnedJumpStartModel,
    jumpstart_document,
    jumpstart_models_of,
    pinned_jumpstart_in,
)
from ..plan.pinned_model import PinnedModel, lock_document, models_of, pinned_in

LOCK_NAME = "models.lock.yaml"
_HEAD = """\
# Written by `low-latency pin`, for version control. Not for editing: each model has a digest.
"""


def read_lock(path: str | Path) -> dict[str, PinnedModel]:
    """The models of a lock file, by name.

    Raises
    ------
    ConfigurationError
        LLE343 where there is none that can be read, LLE345 for a model that somebody changed.
    """
    return models_of(_document(path), str(path))


def read_jumpstart_lock(path: str | Path) -> dict[str, PinnedJumpStartModel]:
    """The models of JumpStart in a lock file, by ID; none where it has no section of them.

    Raises
    ------
    ConfigurationError
        LLE343 where there is no file that can be read, LLE345 for a model that somebody changed.
    """
    document = _document(path)
    models_of(document, str(path))  # which also says whether it is a lock file
    return jumpstart_models_of(document, str(path))


def pinned_jumpstart_model(path: str | Path, model: str) -> PinnedJumpStartModel:
    """One model of JumpStart in a lock file.

    Raises
    ------
    ConfigurationError
        LLE343 to LLE345.
    """
    return pinned_jumpstart_in(read_jumpstart_lock(path), model, str(path))


def _document(path: str | Path) -> Any:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as problem:
        raise LOCK_FILE.error(
            got=getattr(problem, "strerror", None) or str(problem),
            allowed="a file that low-latency pin wrote",
            where=str(path),
        ) from None
    try:
        return yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError as problem:
        raise LOCK_FILE.error(
            got=f"no YAML: {problem}", allowed="a file that low-latency pin wrote", where=str(path)
        ) from None


def pinned_model(path: str | Path, model: str) -> PinnedModel:
    """One model of a lock file.

    Raises
    ------
    ConfigurationError
        LLE343 to LLE345.
    """
    return pinned_in(read_lock(path), model, str(path))


def lock_text(models: Iterable[PinnedModel], jumpstart: Iterable[PinnedJumpStartModel] = ()) -> str:
    """The lock file's text; the same models give the same bytes."""
    document = lock_document(models)
    if section := jumpstart_document(jumpstart):
        document["jumpstart"] = section
    written = yaml.dump(document, Dumper=_DUMPER, sort_keys=False, width=200, allow_unicode=True)
    return _HEAD + written


# libyaml's where it is there: ten times as fast, and lock files of large models are long.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
