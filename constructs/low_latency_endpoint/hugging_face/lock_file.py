"""The lock file of models: read at synthesis without the network, written by ``low-latency pin``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from ..plan.hugging_face_rules import LOCK_FILE
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
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as problem:
        raise LOCK_FILE.error(
            got=getattr(problem, "strerror", None) or str(problem),
            allowed="a file that low-latency pin wrote",
            where=str(path),
        ) from None
    try:
        document = yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError as problem:
        raise LOCK_FILE.error(
            got=f"no YAML: {problem}", allowed="a file that low-latency pin wrote", where=str(path)
        ) from None
    return models_of(document, str(path))


def pinned_model(path: str | Path, model: str) -> PinnedModel:
    """One model of a lock file.

    Raises
    ------
    ConfigurationError
        LLE343 to LLE345.
    """
    return pinned_in(read_lock(path), model, str(path))


def lock_text(models: Iterable[PinnedModel]) -> str:
    """The lock file's text; the same models give the same bytes."""
    written = yaml.dump(
        lock_document(models), Dumper=_DUMPER, sort_keys=False, width=200, allow_unicode=True
    )
    return _HEAD + written


# libyaml's where it is there: ten times as fast, and lock files of large models are long.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
