"""Which models each server knows, and which need code that lies beside their weights."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from ..facts.tables import rows
from .hugging_face_rules import ARCHITECTURE_NOT_SERVED, OWN_CODE
from .pinned_model import PinnedModel
from .served_model import architectures, generates, served_task

_CLASSIFIES = frozenset({"text-classification", "text-ranking"})
_EMBEDS = frozenset({"feature-extraction", "sentence-similarity"})
_GENERATIVE = frozenset({"vllm", "sglang"})
# The only encoder with a decoder that vLLM kept: https://github.com/vllm-project/vllm/pull/24907
_WHISPER = "WhisperForConditionalGeneration"


@cache
def _known(server: str) -> Mapping[str, str]:
    """What a server knows of a name in ``config.json``, by that name."""
    return MappingProxyType(
        {row["name"]: row["serves"] for row in rows("known_models") if row["server"] == server}
    )


def tei_knows(pinned: PinnedModel, *, gpu: bool) -> bool:
    """Whether Text Embeddings Inference serves a model for its task.

    It needs the fast tokenizer's file besides: "text-embeddings-inference only supports fast
    tokenizers" (router/src/lib.rs).
    """
    serves = _known("tei").get(_model_type(pinned), "").split()
    if not any(each.path == "tokenizer.json" for each in pinned.files):
        return False
    if "gpu" in serves and not gpu:
        return False
    task = served_task(pinned)
    return (task in _EMBEDS and "embeds" in serves) or (
        task in _CLASSIFIES and "classifies" in serves
    )


def check_server_knows(
    pinned: PinnedModel, server: str, *, gpu: bool, where: str
) -> tuple[str, ...]:
    """Raise where it is sure that a server does not know a model; return what is doubtful."""
    classes, kind = architectures(pinned), _model_type(pinned)
    named = ", ".join(classes) or kind or "no architecture"
    if server == "tei" and not tei_knows(pinned, gpu=gpu):
        raise ARCHITECTURE_NOT_SERVED.error(
            got=f"{kind or 'no model_type'} for {served_task(pinned)}"
            f" on {'a GPU' if gpu else 'a CPU'}, and Text Embeddings Inference",
            allowed=", ".join(sorted(_known("tei"))) + ", with a tokenizer.json",
            where=where,
        )
    if server in _GENERATIVE and _encodes_first(pinned):
        raise ARCHITECTURE_NOT_SERVED.error(
            got=f"{named}, an encoder with a decoder, and {server}",
            allowed="models with a decoder alone",
            where=where,
        )
    gone = [name for name in classes if _known("vllm").get(name, "").startswith("until")]
    if server == "vllm" and gone:
        raise ARCHITECTURE_NOT_SERVED.error(
            got=f"{gone[0]}, which vLLM served {_known('vllm')[gone[0]]}",
            allowed="what vLLM serves today",
            where=where,
        )
    if server == "vllm" and not any(name in _known("vllm") for name in classes):
        return (
            f"{named} is not in the list of vLLM's architectures of August 2026: vLLM starts if it "
            "came since, or if transformers' own code of it will do",
        )
    if server == "huggingface" and not _transformers_knows(pinned) and not _has_own_code(pinned):
        raise ARCHITECTURE_NOT_SERVED.error(
            got=f"model_type {kind or 'missing'}, and transformers 5.5.3",
            allowed="a model_type of transformers, or code beside the weights",
            where=where,
        )
    if server == "huggingface" and generates(pinned):
        return ("transformers answers one request after the other: slow for text generation",)
    return ()


def trusts_own_code(
    pinned: PinnedModel, server: str, trust_remote_code: bool | None, where: str
) -> bool:
    """Whether the container runs code beside the weights; TEI and llama.cpp cannot run any."""
    if server in ("tei", "llama-cpp") or not _has_own_code(pinned):
        return False
    known = _transformers_knows(pinned)
    if server in _GENERATIVE:
        known = known or any(name in _known("vllm") for name in architectures(pinned))
    if trust_remote_code is None and not known:
        code = [each.path for each in pinned.files if each.path.endswith(".py")]
        raise OWN_CODE.error(
            got=f"{pinned.model} with {', '.join(code[:4])}",
            allowed="trust_remote_code=True, or False",
            where=where,
        )
    return bool(trust_remote_code)


def _has_own_code(pinned: PinnedModel) -> bool:
    return bool(pinned.config.get("auto_map")) and any(
        each.path.endswith(".py") for each in pinned.files
    )


def _transformers_knows(pinned: PinnedModel) -> bool:
    return _model_type(pinned) in _known("huggingface")


def _encodes_first(pinned: PinnedModel) -> bool:
    return bool(pinned.config.get("is_encoder_decoder")) and _WHISPER not in architectures(pinned)


def _model_type(pinned: PinnedModel) -> str:
    return str(pinned.config.get("model_type") or "")
