"""Callers of the endpoint, synchronous and asyncio: retries, zones, hedging, signing, HTTP.

It imports boto3, ``plan`` and ``errors``; never ``aws_cdk``. Names are imported on first use (PEP
562). ``runtime_client()`` has the name of a module, where it is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .async_runtime_client import AsyncRuntimeClient
    from .bearer_tokens import BearerTokens, openai_base_url
    from .generation_requests import prefix_aware_id
    from .generations import GenerationCutError, GenerationFailedError, GenerationTimeoutError
    from .hedging import Hedging
    from .runtime_client import RuntimeClient

_MODULE_OF = {
    "AsyncRuntimeClient": "async_runtime_client",
    "BearerTokens": "bearer_tokens",
    "GenerationCutError": "generations",
    "GenerationFailedError": "generations",
    "GenerationTimeoutError": "generations",
    "Hedging": "hedging",
    "RuntimeClient": "runtime_client",
    "openai_base_url": "bearer_tokens",
    "prefix_aware_id": "generation_requests",
}

__all__ = [
    "AsyncRuntimeClient",
    "BearerTokens",
    "GenerationCutError",
    "GenerationFailedError",
    "GenerationTimeoutError",
    "Hedging",
    "RuntimeClient",
    "openai_base_url",
    "prefix_aware_id",
]

if not TYPE_CHECKING:  # which would take every misspelled name for one that this finds

    def __getattr__(name: str) -> Any:
        module = _MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{module}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
