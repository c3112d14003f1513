"""Pinning a model of the Hub: its commit, the files that are served with their hashes, why others are
left out, and what config.json says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from ..errors import ConfigurationError
from ..errors.given_files import json_value
from ..plan.pinned_model import (
    FOREIGN_CODE,
    GGUF_CHOICE,
    HUB_REVISION,
    NO_SAFETENSORS,
    NOT_WHOLE,
    PinnedFile,
    PinnedModel,
)
from ..plan.served_model import kept_config
from .hub_reading import LARGEST_READ, HubFile, HubInformation, HubReader

_SERVED = (
    ".safetensors", ".json", ".txt", ".model", ".jinja", ".tiktoken", ".py", ".bpe", ".spm",
    ".vocab",
)  # fmt: skip
_OTHER_FORMATS = (".onnx", ".h5", ".msgpack", ".ot", ".tflite", ".mlmodel", ".nemo", ".xml")
# The same weights once more, by the folders that transformers, optimum and Meta put them into.
_OTHER_FORMAT, _OF_TRAINING = "the weights in another format", "from training"
_FOLDERS = {
    **dict.fromkeys(
        ("original", "onnx", "openvino", "coreml", "tf", "flax", "metal"), _OTHER_FORMAT
    ),
    "runs": _OF_TRAINING,
}
_TRAINING = ("training_args.bin", "optimizer.*", "scheduler.*", "rng_state*", "trainer_state.json")
_UNNEEDED = "not needed to serve"
_PICKLE = "pickle, which runs code when it is loaded"
# aws/model-hosting-container-standards, dependency_manager.py: SageMaker's containers install what
# it lists when they start, and stop where they cannot.
_INSTALLS = "its packages would be installed at start"

_INDEX = "model.safetensors.index.json"


class FileChoice(NamedTuple):
    kept: tuple[str, ...]
    left_out: dict[str, str]


def choose_files(
    paths: Iterable[str],
    *,
    shards: Collection[str] = (),
    allow_pickle: bool = False,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    where: str = "",
) -> FileChoice:
    """Choose what serving a model needs."""
    everything = sorted(paths)
    tensors = {_folder(path) for path in everything if path.endswith(".safetensors")}
    has_others = any(
        path.endswith(".safetensors") and "/" not in path and not _is_consolidated(path)
        for path in everything
    )
    kept, left_out = [], {}
    for path in everything:
        reason = _reason(path, shards, has_others, bool(tensors))
        if _matches(path, exclude):
            reason = "excluded"
        elif (reason in (_UNNEEDED, _OTHER_FORMAT, _OF_TRAINING) and _matches(path, include)) or (
            reason == _PICKLE and allow_pickle and _folder(path) not in tensors
        ):
            reason = ""
        if reason:
            left_out[path] = reason
        else:
            kept.append(path)
    _check_weights(kept, left_out, tensors, where)
    return _with_one_gguf(kept, left_out, include, where)


def _reason(path: str, shards: Collection[str], has_others: bool, has_tensors: bool) -> str:
    """Why a file is left out; empty when it is not."""
    name, first = path.rpartition("/")[2], path.partition("/")[0]
    if name == "requirements.txt":
        return _INSTALLS
    if "/" in path and first in _FOLDERS:
        return _FOLDERS[first]
    if _matches(name, _TRAINING) or ("/" in path and first.startswith("checkpoint-")):
        return _OF_TRAINING
    if any(part.startswith(".") for part in path.split("/")):
        return _UNNEEDED
    if path.endswith(".safetensors") and "/" not in path:
        again = (has_others and _is_consolidated(path)) or (shards and path not in shards)
        return _OTHER_FORMAT if again else ""
    if PinnedFile(path, 0, "").is_pickle:
        return _PICKLE
    if path.endswith(".gguf"):
        return _OTHER_FORMAT if has_tensors else ""
    if path.endswith(_OTHER_FORMATS):
        return _OTHER_FORMAT
    return "" if path.endswith(_SERVED) else _UNNEEDED


def _check_weights(
    kept: list[str], left_out: dict[str, str], tensors: set[str], where: str
) -> None:
    weights = [path for path in kept if PinnedFile(path, 0, "").is_weights]
    pickles = [path for path, reason in left_out.items() if reason == _PICKLE]
    # A folder's own weights, such as 2_Dense/ of sentence-transformers, which nothing replaces.
    alone = [
        path
        for path in pickles
        if fnmatchcase(path.rpartition("/")[2], "pytorch_model*.bin")
        and _folder(path) not in tensors
    ]
    if weights and not alone:
        return
    pickled_weights = alone or pickles
    raise NO_SAFETENSORS.error(
        got=_some(pickled_weights) or "no weights at all" + (", as excluded" if left_out else ""),
        allowed=".safetensors, or .gguf",
        where=where,
        fix="" if pickled_weights else "Choose a model or a revision with .safetensors files.",
    )


def _with_one_gguf(
    kept: list[str], left_out: dict[str, str], include: Sequence[str], where: str
) -> FileChoice:
    """Of several GGUF files the one that is asked for: llama.cpp loads one, in parts or whole."""
    files = [path for path in kept if path.endswith(".gguf")]
    chosen = [path for path in files if _matches(path, include)] or files
    if len({path.rpartition("-of-")[0].rpartition("-")[0] or path for path in chosen}) > 1:
        raise GGUF_CHOICE.error(
            got=_some(chosen), allowed="one GGUF model, in one file or in parts", where=where
        )
    for path in files:
        if path not in chosen:
            kept.remove(path)
            left_out[path] = "another GGUF file is served"
    return FileChoice(tuple(kept), dict(sorted(left_out.items())))


def _some(paths: Sequence[str]) -> str:
    more = len(paths) - 4
    return ", ".join(paths[:4]) + (f" and {more} more" if more > 0 else "")


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _is_consolidated(path: str) -> bool:
    return fnmatchcase(path, "consolidated*.safetensors")


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Which files are staged that otherwise would not be, and the other way round."""

    # take pickle files where there are no safetensors; by default that is an error
    allow_pickle: bool = False
    include: tuple[str, ...] = ()  # patterns: :func:`.file_choice.choose_files`
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pinning:
    """A pinned model, why files are left out, and the model's name if the Hub has a newer one."""

    pinned: PinnedModel
    reasons: dict[str, str]
    renamed: str | None = None


def pin(
    hub: HubReader,
    model: str,
    revision: str = "main",
    options: FileOptions = FileOptions(),
    say: Callable[[str], None] = lambda text: None,
) -> Pinning:
    """Pin a model as it is now; small files, known by git's SHA-1 alone, are read and hashed."""
    say(model)
    info = hub.information(model, revision)
    if info.gated:
        hub.check_access(model)
    contents = _Contents(hub, model, info, say)
    where = f"{model} at {info.commit[:12]}"
    shards = _shards(contents, _INDEX, where) if _INDEX in info.files else []
    choice = choose_files(
        info.files,
        shards=shards,
        allow_pickle=options.allow_pickle,
        include=options.include,
        exclude=options.exclude,
        where=where,
    )
    for path in choice.kept:
        if path.endswith(".index.json"):
            _check_shards(_shards(contents, path, where), path, choice.kept, where)
    _check_code(contents, choice.kept, where)
    config = contents.document("config.json", where) if "config.json" in choice.kept else {}
    pinned = PinnedModel(
        model=model,
        revision=revision,
        commit=info.commit,
        files=tuple(contents.pinned(path) for path in choice.kept),
        task=info.task,
        library=info.library,
        license=info.license,
        gated=info.gated,
        parameters=dict(sorted(info.parameters.items())),
        config=kept_config(config),
        left_out=tuple(choice.left_out),
    )
    return Pinning(pinned, choice.left_out, info.name if info.name != model else None)


def _there(hub: HubReader, model: str, revision: str) -> HubInformation | None:
    try:
        return hub.information(model, revision)
    except ConfigurationError as error:
        if error.code != HUB_REVISION.code:
            raise
        return None


def differences(
    hub: HubReader, pinned: PinnedModel, say: Callable[[str], None] = lambda text: None
) -> list[str]:
    """What is otherwise on the Hub than in the lock file, a line for each; empty when it is the same."""
    say(pinned.model)
    differences: list[str] = []
    info = _there(hub, pinned.model, pinned.revision)
    if info is None:
        differences.append(f"the revision {pinned.revision} is gone")
    elif info.commit != pinned.commit:
        moved = f"{pinned.revision} moved from {pinned.commit[:12]} to {info.commit[:12]}"
        differences.append(moved)
        info = None
    info = info or _there(hub, pinned.model, pinned.commit)
    if info is None:
        return [*differences, f"the commit {pinned.commit[:12]} is gone"]
    contents = _Contents(hub, pinned.model, info, say)
    for file in pinned.files:
        stated = info.files.get(file.path)
        if stated is None:
            differences.append(f"{file.path} is gone from {pinned.commit[:12]}")
        elif stated.size != file.size or contents.pinned(file.path) != file:
            differences.append(f"{file.path} has other bytes at {pinned.commit[:12]}")
    return differences


class _Contents:
    """Small files of a model at a commit, each read once."""

    def __init__(
        self, hub: HubReader, model: str, info: HubInformation, say: Callable[[str], None]
    ) -> None:
        self._hub, self._model, self._info, self._say = hub, model, info, say
        self._read: dict[str, bytes] = {}

    def bytes(self, path: str) -> bytes:
        if path not in self._read:
            self._say(f"{self._model} {path}")
            self._read[path] = self._hub.content(self._model, self._info.commit, self.file(path))
        return self._read[path]

    def file(self, path: str) -> HubFile:
        return self._info.files[path]

    def pinned(self, path: str) -> PinnedFile:
        file = self.file(path)
        sha256 = file.sha256 or hashlib.sha256(self.bytes(path)).hexdigest()
        return PinnedFile(path, file.size, sha256)

    def document(self, path: str, where: str) -> dict[str, Any]:
        try:
            document: dict[str, Any] = json_value(self.bytes(path), {})
        except ValueError as problem:
            raise NOT_WHOLE.error(
                got=f"{path} is not a JSON object: {problem}", allowed="a JSON object", where=where
            ) from None
        return document


def _shards(contents: _Contents, index: str, where: str) -> list[str]:
    """The files that an index names."""
    weight_map = contents.document(index, where).get("weight_map")
    if not isinstance(weight_map, dict) or not all(
        isinstance(each, str) for each in weight_map.values()
    ):
        raise NOT_WHOLE.error(got=f"{index} without a weight_map", allowed="one", where=where)
    folder = index.rpartition("/")[0]
    return sorted({f"{folder}/{each}".lstrip("/") for each in weight_map.values()})


def _check_shards(shards: list[str], index: str, kept: Sequence[str], where: str) -> None:
    if not index.endswith(".safetensors.index.json"):
        return  # of pickle files, which may be left out
    missing = [shard for shard in shards if shard not in kept]
    if missing:
        raise NOT_WHOLE.error(
            got=f"{index} names {', '.join(missing[:4])}",
            allowed="files that exist and are not left out",
            where=where,
        )


def _check_code(contents: _Contents, kept: Sequence[str], where: str) -> None:
    """Refuse code by the name of a repository.

    transformers asks the Hub for a reference with ``--`` wherever the model itself lies, even for
    the model's own repository: transformers/dynamic_module_utils.py, get_class_from_dynamic_module.
    """
    for path in kept:
        # Large ones are vocabularies.
        if path.endswith(".json") and contents.file(path).size <= min(LARGEST_READ, 2**20):
            for reference in _references(contents.bytes(path)):
                if "--" in reference:
                    raise FOREIGN_CODE.error(
                        got=f"{path} takes {reference.partition('--')[2]} from "
                        f"{reference.partition('--')[0]}",
                        allowed="code in files of the model",
                        where=where,
                    )


def _references(content: bytes) -> list[str]:
    """What ``auto_map`` names; a tokenizer's value is a list, in which one may be missing."""
    try:
        document = json_value(content)
    except ValueError:
        return []
    named = document.get("auto_map") if isinstance(document, dict) else None
    values = named.values() if isinstance(named, dict) else ()
    return [
        text
        for value in values
        for text in (value if isinstance(value, list) else [value])
        if isinstance(text, str)
    ]
