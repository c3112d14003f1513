"""A model of the Hugging Face Hub as a lock file pins it: a commit, and every file by its hash."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, NamedTuple

from ..errors import ConfigurationError
from ..errors.frozen import dataclass
from .hugging_face_rules import LOCK_EDITED, LOCK_FILE, NOT_PINNED

_VERSION = 1
"""Of the lock file's form."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# The Hub's own rule for names: huggingface_hub 2.4.0, utils/_validators.py, validate_repo_id.
_MODEL = re.compile(r"(?:[\w.-]{1,96}/)?[\w.-]{1,96}", re.ASCII)
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_WEIGHTS = (".safetensors", ".gguf", *_PICKLED)


class PinnedFile(NamedTuple):
    """One file of a pinned model."""

    path: str  # below the repository's root, and below /opt/ml/model where it is served
    size: int  # in bytes
    sha256: str  # of its bytes, 64 hexadecimal digits

    @property
    def is_weights(self) -> bool:
        """Whether it holds weights, by its name."""
        return self.path.endswith(_WEIGHTS)

    @property
    def is_pickle(self) -> bool:
        """Whether loading it runs code that it carries, by its name."""
        return self.path.endswith(_PICKLED)


@dataclass(frozen=True, kw_only=True)
class PinnedModel:
    """One model of a lock file."""

    model: str  # its name on the Hub: Qwen/Qwen3-8B
    revision: str  # what was asked for: a branch, a tag or a commit
    commit: str  # what that was: 40 hexadecimal digits
    files: tuple[PinnedFile, ...]  # all that is staged and served
    task: str | None = None  # the Hub's pipeline_tag, such as text-generation
    library: str | None = None  # the Hub's library_name, such as transformers
    license: str | None = None  # as the model's card says it, such as apache-2.0
    gated: bool = False  # whether its files are for accounts whose request was granted
    # how many of each type, as the safetensors files say: {"BF16": 8190735360}
    parameters: Mapping[str, int] = field(default_factory=dict, hash=False)
    # what config.json says of the model's shape: model_config.CONFIG_KEYS of it
    config: Mapping[str, Any] = field(default_factory=dict, hash=False)
    left_out: tuple[str, ...] = ()  # files of the repository that are not staged

    @property
    def prefix(self) -> str:
        """Where it lies in a bucket; another commit, or other files of it, lie elsewhere."""
        return f"hub/{self.model}/{self.commit}/{self.file_list}/"

    @cached_property
    def file_list(self) -> str:
        """What tells lists of files of one commit apart: 12 digits of their SHA-256."""
        return _sha256(json.dumps(sorted(self.files)))[:12]

    @property
    def total_bytes(self) -> int:
        """Of all its files."""
        return sum(each.size for each in self.files)

    @property
    def weight_bytes(self) -> int:
        """Of its weights."""
        return sum(each.size for each in self.files if each.is_weights)

    def contents(self) -> dict[str, Any]:
        """What the lock file says of it, without the digest."""
        stated = {
            "revision": self.revision,
            "commit": self.commit,
            "task": self.task,
            "library": self.library,
            "license": self.license,
            "gated": self.gated,
            "parameters": dict(self.parameters),
            "config": dict(self.config),
            "files": {each.path: {"size": each.size, "sha256": each.sha256} for each in self.files},
            "left_out": list(self.left_out),
        }
        return {key: value for key, value in stated.items() if value not in (None, {}, [])}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that the lock file says of it."""
        return digest_of(self.model, self.contents())


def digest_of(name: str, contents: Mapping[str, Any]) -> str:
    """SHA-256 of what a lock file says of a model."""
    written = json.dumps([name, contents], sort_keys=True, separators=(",", ":"))
    return _sha256(written)


def _sha256(text: str) -> str:
    import hashlib  # loads OpenSSL, which an app without a pinned model does without

    return hashlib.sha256(text.encode()).hexdigest()


def lock_document(models: Iterable[PinnedModel]) -> dict[str, Any]:
    """What a lock file holds, models and files in order."""
    return {
        "version": _VERSION,
        "models": {
            each.model: {**each.contents(), "digest": each.digest}
            for each in sorted(models, key=lambda pinned: pinned.model)
        },
    }


def models_of(
    document: Any, where: str, *, without: Collection[str] = ()
) -> dict[str, PinnedModel]:
    """The models that a lock file's document holds, by name."""
    models = document.get("models") if isinstance(document, Mapping) else None
    if not isinstance(models, Mapping) or document.get("version") != _VERSION:
        raise LOCK_FILE.error(
            got="something else", allowed=f"version: {_VERSION}, and models by name", where=where
        )
    return {
        str(name): _model(str(name), stated, where)
        for name, stated in models.items()
        if str(name) not in without
    }


def pinned_in(models: Mapping[str, PinnedModel], model: str, where: str) -> PinnedModel:
    """One of the models of a lock file."""
    if model not in models:
        raise NOT_PINNED.error(got=model, allowed=", ".join(models) or "none so far", where=where)
    return models[model]


def _model(name: str, stated: Any, where: str) -> PinnedModel:
    if not isinstance(stated, Mapping) or not _MODEL.fullmatch(name) or ".." in name:
        raise _edited(name, "not a model's name with what is pinned of it", where)
    try:
        pinned = PinnedModel(
            model=name,
            revision=_text(stated["revision"]),
            commit=_matching(_COMMIT, stated["commit"]),
            files=tuple(_file(path, facts) for path, facts in stated["files"].items()),
            task=_optional_text(stated.get("task")),
            library=_optional_text(stated.get("library")),
            license=_optional_text(stated.get("license")),
            gated=stated.get("gated", False) is not False,
            parameters={
                _text(kind): _count(number)
                for kind, number in (stated.get("parameters") or {}).items()
            },
            config=dict(stated.get("config") or {}),
            left_out=tuple(map(_text, stated.get("left_out") or ())),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise _edited(name, f"not as pinned: {problem}", where) from None
    try:
        digest = pinned.digest
    except (TypeError, ValueError):  # no value of JSON, such as a date
        digest = ""
    if stated.get("digest") != digest:
        raise _edited(name, "another digest than that of its contents", where)
    return pinned


def _edited(name: str, got: str, where: str) -> ConfigurationError:
    return LOCK_EDITED.error(
        got=f"{name}: {got}", allowed="what low-latency pin wrote", where=where
    )


def _file(path: str, facts: Mapping[str, Any]) -> PinnedFile:
    parts = str(path).split("/")
    if any(part in ("", ".", "..") or "\0" in part or len(part.encode()) > 255 for part in parts):
        # https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_S3ModelDataSource.html
        raise ValueError(f"{path!r} is no file below the model's folder")
    return PinnedFile(str(path), _count(facts["size"]), _matching(_SHA256, facts["sha256"]))


def _count(value: Any) -> int:
    """A value of a lock file that is a whole number from 0; ValueError for another."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no whole number from 0")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    if not pattern.fullmatch(_text(value)):
        raise ValueError(f"{value!r}")
    return str(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r}")
    return value
