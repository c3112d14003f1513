"""A Hugging Face Hub on loopback: its API, its files, its CDN, and what goes wrong with them.

It behaves as the Hub is documented and as huggingface_hub 2.4.0 expects it, and where it is left
open, as its users report it at its worst. It imports nothing but the standard library;
:func:`tiny_models` alone needs ``gguf`` and ``numpy``, for a model that llama.cpp loads.
"""

from __future__ import annotations

from .repository import FakeModel, git_blob_id
from .server import FakeHub, SeenRequest
from .tiny_models import tiny_gguf, tiny_models, tiny_safetensors

__all__ = [
    "FakeHub",
    "FakeModel",
    "SeenRequest",
    "git_blob_id",
    "tiny_gguf",
    "tiny_models",
    "tiny_safetensors",
]
