"""Which files of a model's repository are staged and served, and why the others are not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..plan.pinned_model import GGUF_CHOICE, NO_SAFETENSORS, PinnedFile

_SERVED = (
    ".safetensors", ".json", ".txt", ".model", ".jinja", ".tiktoken", ".py", ".bpe", ".spm",
    ".vocab",
)  # fmt: skip
_OTHER_FORMATS = (".onnx", ".h5", ".msgpack", ".ot", ".tflite", ".mlmodel", ".nemo", ".xml")
# The same weights once more, by the folders that transformers, optimum and Meta put them into.
_FOLDERS = {
    "original": "the weights in another format",
    "onnx": "the weights in another format",
    "openvino": "the weights in another format",
    "coreml": "the weights in another format",
    "tf": "the weights in another format",
    "flax": "the weights in another format",
    "metal": "the weights in another format",
    "runs": "from training",
}
_TRAINING = ("training_args.bin", "optimizer.*", "scheduler.*", "rng_state*", "trainer_state.json")
_UNNEEDED = "not needed to serve"
_OTHER_FORMAT = "the weights in another format"
_PICKLE = "pickle, which runs code when it is loaded"
# aws/model-hosting-container-standards, dependency_manager.py: SageMaker's containers install what
# it lists when they start, and stop where they cannot.
_INSTALLS = "its packages would be installed at start"


class FileChoice(NamedTuple):
    """What is staged, and why the rest is not."""

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
        elif (
            reason in (_UNNEEDED, _OTHER_FORMAT, "from training") and _matches(path, include)
        ) or (reason == _PICKLE and allow_pickle and _folder(path) not in tensors):
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
        return "from training"
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
    found = alone or pickles
    raise NO_SAFETENSORS.error(
        got=_some(found) or "no weights at all" + (", as excluded" if left_out else ""),
        allowed=".safetensors, or .gguf",
        where=where,
        fix="" if found else "Choose a model or a revision with .safetensors files.",
    )


def _with_one_gguf(
    kept: list[str], left_out: dict[str, str], include: Sequence[str], where: str
) -> FileChoice:
    """Of several GGUF files the one that is asked for: llama.cpp loads one, in parts or whole."""
    files = [path for path in kept if path.endswith(".gguf")]
    chosen = [path for path in files if _matches(path, include)] or files
    if len({path.rpartition("-of-")[0].rpartition("-")[0] or path for path in chosen}) > 1:
        raise GGUF_CHOICE.error(
            got=_some(chosen), allowed="one, in one file or its parts", where=where
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
