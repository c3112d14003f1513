"""Clients of Amazon SageMaker endpoints for services that must answer quickly.

:class:`RuntimeClient` is for threads, :class:`AsyncRuntimeClient` for asyncio. Both take boto3's
parameters, and give its answers and errors. :func:`runtime_client` returns boto3's own client with
settings for low latency. Names are imported on first use (PEP 562): ``import low_latency_client``
loads neither boto3 nor httptools.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .async_client import AsyncRuntimeClient
    from .bearer_tokens import BearerTokens, openai_base_url
    from .blocking_client import RuntimeClient
    from .boto3_client import runtime_client
    from .call_records import CallRecord
    from .errors import ConfigurationError
    from .generation_requests import prefix_aware_id
    from .generations import GenerationCutError, GenerationFailedError, GenerationTimeoutError
    from .hedging import Hedging
    from .zone import ClientZone, find_client_zone

# PyPI takes no local version, so nobody else's package can be taken for this one. The first release
# drops it: CONTRIBUTING.md.
__version__ = "0.1.0+unpublished"

_MODULE_OF = {
    "AsyncRuntimeClient": "async_client",
    "BearerTokens": "bearer_tokens",
    "CallRecord": "call_records",
    "ClientZone": "zone",
    "ConfigurationError": "errors",
    "GenerationCutError": "generations",
    "GenerationFailedError": "generations",
    "GenerationTimeoutError": "generations",
    "Hedging": "hedging",
    "RuntimeClient": "blocking_client",
    "find_client_zone": "zone",
    "openai_base_url": "bearer_tokens",
    "prefix_aware_id": "generation_requests",
    "runtime_client": "boto3_client",
}

__all__ = [
    "AsyncRuntimeClient",
    "BearerTokens",
    "CallRecord",
    "ClientZone",
    "ConfigurationError",
    "GenerationCutError",
    "GenerationFailedError",
    "GenerationTimeoutError",
    "Hedging",
    "RuntimeClient",
    "find_client_zone",
    "openai_base_url",
    "prefix_aware_id",
    "runtime_client",
]

if not TYPE_CHECKING:  # a type checker would otherwise accept every misspelled name

    def __getattr__(name: str) -> Any:
        module = _MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{module}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
