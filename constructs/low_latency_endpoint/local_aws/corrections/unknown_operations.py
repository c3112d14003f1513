"""Operations that moto does not know: a refusal that an SDK can read.

moto's server answers them with its web framework's error page and a traceback on the terminal.
"""

from __future__ import annotations

import functools
from typing import Any

from moto.core.responses import BaseResponse

from .. import protocols
from ..protocols import ServiceError


def apply() -> None:
    """Refuse them as AWS refuses an action that a service does not have."""
    call = BaseResponse.call_action

    @functools.wraps(call)
    def call_action(self: Any) -> Any:
        try:
            return call(self)
        except NotImplementedError:
            refusal = ServiceError(
                f"{self.service_name}:{self._get_action()} is not emulated by the local AWS",
                "InvalidAction",
            )
            if self.headers.get("X-Amz-Target"):
                body, kind = protocols.write_json_error(refusal), "application/x-amz-json-1.1"
            else:
                body, kind = protocols.write_query_error(refusal), "text/xml"
            return 400, {"Content-Type": kind}, body

    BaseResponse.call_action = call_action
