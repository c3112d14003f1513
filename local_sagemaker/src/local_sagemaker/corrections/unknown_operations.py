"""What moto does not know it refuses as AWS would: operations, registries."""

from __future__ import annotations

import logging
from collections.abc import Callable
from tempfile import gettempdir
from typing import Any

from moto.core.responses import BaseResponse
from moto.ecr.models import ecr_backends
from moto.ecr.responses import ECRResponse
from moto.s3.responses import S3Response

from .. import protocols
from ..admission import error_xml
from ..protocols import ServiceError
from .replacing import around

logger = logging.getLogger(__name__)


@around(BaseResponse)
def call_action(original: Callable[[Any], Any], self: Any) -> Any:
    """Refuse as AWS does what is missing or fails; moto gives a web page and a traceback."""
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
    is_json = bool(self.headers.get("X-Amz-Target"))
    headers = {"Content-Type": protocols.content_type(is_json)}
    return refusal.status, headers, protocols.write_error(refusal, is_json)


@around(S3Response)
def key_response(original: Callable[..., Any], self: Any, *given: Any) -> Any:
    """Say which error of this machine keeps an object from being stored: a full disk, mostly."""
    try:
        return original(self, *given)
    except OSError as error:
        logger.exception("s3: %s", self.path)
        words = f"local AWS: {error.strerror or error} (objects lie in {gettempdir()})"
        return 500, {"Content-Type": "application/xml"}, error_xml("s3", "InternalError", words)


def _backend(self: Any) -> Any:
    """Give the registry that is named, where moto always answers from the caller's."""
    return ecr_backends[self._get_param("registryId") or self.current_account][self.region]


ECRResponse.ecr_backend = property(_backend)
