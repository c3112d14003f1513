"""A model of the Hugging Face Hub as a lock file pins it: its commit, its files by their hashes, and its rules."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, NamedTuple

from ..errors import ConfigurationError, rule
from ..errors.frozen import dataclass

HUB = "https://huggingface.co/docs/hub/"
CONTAINERS = "https://aws.github.io/deep-learning-containers/"

LOCK_FILE = rule(
    "LLE343",
    "a lock file of models cannot be read",
    fix="Create the file with `low-latency pin MODEL`.",
)
NOT_PINNED = rule(
    "LLE344",
    "the model is not in the lock file",
    fix="Run `low-latency pin MODEL` on a machine with network access.",
)
LOCK_EDITED = rule(
    "LLE345",
    "the lock file's entry for a model was changed",
    fix="Run `low-latency pin MODEL` again, and do not edit the file.",
)
LICENSE = rule(
    "LLE346",
    "the model's licence is not accepted",
    fix="Read the licence on the model's page, then name it in accept_license.",
    source=HUB + "repositories-licenses",
)
HUB_MODEL = rule(
    "LLE347",
    "the Hub has no such model, or does not show it to you",
    fix="Check the name, such as Qwen/Qwen3-8B. A private model needs a token: HF_TOKEN, "
    "or hf auth login.",
    source=HUB + "models-the-hub",
)
HUB_REVISION = rule(
    "LLE348",
    "the model has no such revision",
    fix="Name a branch, tag or commit of its history; the default is main.",
    source=HUB + "repositories-getting-started",
)
HUB_GATED = rule(
    "LLE349",
    "the model is gated, and access was not granted",
    fix="Request access on the model's page, then give that account's token: HF_TOKEN for "
    "low-latency pin, a Secrets Manager secret for the deployment.",
    source=HUB + "models-gated",
)
NO_SAFETENSORS = rule(
    "LLE350",
    "the model has no weights that are safe to load",
    fix="Choose a model or revision with .safetensors files. If you trust its pickle "
    "files, which run code when loaded: low-latency pin --allow-pickle.",
    source=HUB + "security-pickle",
)
FOREIGN_CODE = rule(
    "LLE351",
    "the model's code is in another repository",
    fix="Choose a model that the transformers library supports, or a model with code in its own "
    "repository. The container has no network.",
    source="https://huggingface.co/docs/transformers/custom_models",
)
FILE_TOO_LARGE = rule(
    "LLE352",
    "a file is too large for the staging function",
    fix="Stage the model before the deployment: low-latency stage.",
    source="/lambda/latest/dg/gettingstarted-limits.html",
)
NO_CONTAINER = rule(
    "LLE353",
    "no container is known for this task on this accelerator",
    fix="Choose another instance type, or name an image with Container(image=...).",
    source=CONTAINERS,
)
ARCHITECTURE_NOT_SERVED = rule(
    "LLE354",
    "the container does not know the model's architecture",
    fix="Choose another model, or name an image with Container(image=...).",
    source=CONTAINERS,
)
DOES_NOT_FIT = rule(
    "LLE355",
    "the model does not fit into the accelerators' memory",
    fix="Choose an allowed instance type, a smaller context, or a quantized model.",
)
NO_DISK = rule(
    "LLE356",
    "the model does not fit onto the instance's storage",
    fix="Raise volume_size, or choose a type with more local storage.",
    source="/sagemaker/latest/dg/host-instance-storage.html",
)
FOREIGN_FILES = rule(
    "LLE357",
    "the model's prefix in S3 holds files that the lock file lacks",
    fix="Remove these files. SageMaker would copy them into the container too.",
    source="/sagemaker/latest/dg/large-model-inference-uncompressed.html",
)
HUB_UNREACHABLE = rule(
    "LLE358",
    "the Hub does not answer as it should",
    fix="Try again later. To use a mirror or proxy, set HF_ENDPOINT to its address.",
    source="https://status.huggingface.co",
)
HUB_ENDPOINT = rule(
    "LLE359",
    "the Hub's address is not valid",
    fix="Use https://huggingface.co, or the https address of your mirror.",
)
FILE_DIFFERS = rule(
    "LLE313",
    "a file differs from the lock file",
    fix="Try again: the file was discarded. If it differs again, pin the model again and find out "
    "who changed the file.",
)
INSTANCE_TYPE_NEEDED = rule(
    "LLE314",
    "a container of a Hub model needs the instance type",
    fix="Pass instance_type= to Container.from_hugging_face.",
)
TYPES_DIFFER = rule(
    "LLE393",
    "one container cannot serve the Hub model on all of these instance types",
    fix="Choose types with as many accelerators of the same kind.",
)
HUB_MODEL_ALONE = rule(
    "LLE368",
    "a model of the Hub is combined with other data",
    fix="Leave out data, model_package and multi_model beside hugging_face.",
)
OWN_CODE = rule(
    "LLE390",
    "the model brings code, and trust_remote_code is not set",
    fix="Read the .py files that the lock file pins. Then set trust_remote_code=True, or "
    "False if the server knows the model without them.",
    source="https://huggingface.co/docs/transformers/custom_models",
)
CONTEXT_LENGTH = rule(
    "LLE391",
    "the model does not support this context length",
    fix="Give at most the model's context length, or leave the option out.",
)
SERVER = rule(
    "LLE392",
    "this model server is not known",
    fix="Leave the server out, or name an image with Container(image=...).",
    source=CONTAINERS,
)
STAGED_FILES_GONE = rule(
    "LLE398",
    "a model's staged files are gone",
    fix="Deploy again. Somebody removed the files, or another stack that shared them.",
)
TOO_MANY_FILES = rule(
    "LLE399",
    "a model has more files than a deployment stages",
    fix="Pin fewer files, or use low-latency stage and ModelData.from_s3(bucket, pinned.prefix).",
)
GGUF_CHOICE = rule(
    "LLE319",
    "the model has several GGUF files",
    fix="Choose one: `low-latency pin MODEL --include '*Q4_K_M*.gguf'`.",
    source=HUB + "gguf",
)
NOT_WHOLE = rule(
    "LLE320",
    "the model's repository is incomplete",
    fix="Choose another revision, or tell the model's owner.",
    source="https://huggingface.co/docs/transformers/big_models",
)


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
        return sum(file.size for file in self.files)

    @property
    def weight_bytes(self) -> int:
        """Of its weights."""
        return sum(file.size for file in self.files if file.is_weights)

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
            "files": {file.path: {"size": file.size, "sha256": file.sha256} for file in self.files},
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
            model.model: {**model.contents(), "digest": model.digest}
            for model in sorted(models, key=lambda pinned: pinned.model)
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


GB = 10**9
SECONDS_OF_A_CALL = 800
"""Of the function's 900 s, without its start, its answer and a last connection. Lambda's guide gives
no more (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html); its API model in
botocore 1.44.8 says 1,800 s, which nobody has seen yet."""
ASSUMED_BYTES_PER_SECOND = 25 * 10**6
"""From the Hub's CDN through one function into S3. An assumption, not measured on AWS; the function
writes into its log what it was."""
LARGEST_FILE = SECONDS_OF_A_CALL * ASSUMED_BYTES_PER_SECOND
BYTES_OF_A_CALL = 8 * GB
"""So that at the assumed rate a call takes five minutes, and at a third of it still ends in time."""
FILES_OF_A_CALL = 200
FILES_OF_A_MODEL = 1000
"""The names of all stand in one event for the function, which Lambda takes up to 256 KiB:
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html. An update's has the former
names, too."""
CALLS_AT_ONCE = 8
"""Of accounts that are new, with 10 functions at once, this leaves some."""


def staging_calls(
    pinned: PinnedModel, *, staged_before: bool = False
) -> tuple[tuple[PinnedFile, ...], ...]:
    """A model's files in order, packed into calls."""
    if len(pinned.files) > FILES_OF_A_MODEL:
        raise TOO_MANY_FILES.error(
            got=len(pinned.files), allowed=f"up to {FILES_OF_A_MODEL}", where=pinned.model
        )
    calls: list[list[PinnedFile]] = []
    room = 0
    for file in pinned.files:
        if file.size > LARGEST_FILE and not staged_before:
            raise FILE_TOO_LARGE.error(
                got=f"{file.path}: {file.size / GB:.1f} GB",
                allowed=f"up to {LARGEST_FILE / GB:.0f} GB: 15 minutes at an assumed "
                f"{ASSUMED_BYTES_PER_SECOND / 10**6:.0f} MB/s",
                where=pinned.model,
            )
        if not calls or file.size > room or len(calls[-1]) == FILES_OF_A_CALL:
            calls.append([])
            room = BYTES_OF_A_CALL
        calls[-1].append(file)
        room -= file.size
    return tuple(tuple(call) for call in calls)
