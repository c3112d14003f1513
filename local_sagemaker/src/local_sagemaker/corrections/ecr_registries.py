"""Registries: moto takes `registryId` and answers from the caller's own registry all the same.

An image that only the caller's registry has would pass for one in AWS's.
"""

from __future__ import annotations

from typing import Any

from moto.ecr.models import ecr_backends
from moto.ecr.responses import ECRResponse


def apply() -> None:
    """Answer from the registry that the request names, which is the caller's by default."""

    def backend(self: Any) -> Any:
        registry = self._get_param("registryId") or self.current_account
        return ecr_backends[registry][self.region]

    ECRResponse.ecr_backend = property(backend)
