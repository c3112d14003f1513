"""What moto does not know: operations, refused as at AWS, registries, AWS's policies."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from moto.core.responses import BaseResponse
from moto.ecr.models import ecr_backends
from moto.ecr.responses import ECRResponse
from moto.iam.models import IAMBackend

from .. import protocols
from ..permissions.evaluator import NotJudged
from ..permissions.principals import aws_managed_policy
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
    except NotJudged as unknown:
        refusal = ServiceError(
            f"The local AWS cannot judge this request: it does not know {unknown}.", "NotEmulated"
        )
    except Exception as error:
        logger.exception("%s:%s", self.service_name, self._get_action())
        refusal = ServiceError(
            f"local AWS internal error: {type(error).__name__}: {error}", "InternalFailure", 500
        )
    is_json = protocols.reads_json(self.service_name, self.headers.get("Content-Type") or "")
    headers = {"Content-Type": protocols.content_type(is_json), "x-amzn-errortype": refusal.code}
    return refusal.status, headers, protocols.write_error(refusal, is_json)


@around(IAMBackend, "attach_role_policy", "attach_user_policy")
def load_before_attaching(
    original: Callable[..., None], self: Any, policy_arn: str, name: str
) -> None:
    """Load an AWS-managed policy before it is attached."""
    aws_managed_policy(policy_arn, self)
    original(self, policy_arn, name)


def _backend(self: Any) -> Any:
    """Give the registry that is named, where moto always answers from the caller's."""
    return ecr_backends[self._get_param("registryId") or self.current_account][self.region]


ECRResponse.ecr_backend = property(_backend)
