"""What moto does not know it refuses as AWS would: operations, registries."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from moto.core.responses import BaseResponse
from moto.ecr.models import ecr_backends
from moto.ecr.responses import ECRResponse

from .. import protocols
from ..protocols import ServiceError
from .replacing import around

logger = logging.getLogger(__name__)


@around(BaseResponse)
def call_action(original: Callable[[Any], Any], self: Any) -> Any:
    """Refuse as AWS does: an action that it does not have, or an internal failure.

    moto's server answers with its web framework's error page and a traceback on the terminal.
    """
    try:
        return original(self)
    except NotImplementedError:
        refusal = ServiceError(
            f"{self.service_name}:{self._get_action()} is not emulated by the local AWS",
            "InvalidAction",
        )
    except Exception as error:
        logger.exception("%s:%s", self.service_name, self._get_action())
        refusal = ServiceError(
            f"local AWS internal error: {type(error).__name__}: {error}", "InternalFailure", 500
        )
    if self.headers.get("X-Amz-Target"):
        body, kind = protocols.write_json_error(refusal), "application/x-amz-json-1.1"
    else:
        body, kind = protocols.write_query_error(refusal), "text/xml"
    return refusal.status, {"Content-Type": kind}, body


def _backend(self: Any) -> Any:
    """Give the registry that the request names, which is the caller's by default.

    moto takes `registryId` and answers from the caller's own registry all the same: an image that
    only the caller's registry has would pass for one in AWS's.
    """
    return ecr_backends[self._get_param("registryId") or self.current_account][self.region]


ECRResponse.ecr_backend = property(_backend)
