"""AWS::SageMaker::*: what is waited for."""

from __future__ import annotations

import time
from typing import Any

from botocore.exceptions import ClientError

from ..protocols import ServiceError
from .calls import Known
from .resource_type import Created, Existing, Place, Properties, ResourceType

_TIMEOUT = 600.0
_PAUSE = 0.05
_ENDED = ("InService", "Failed", "UpdateRollbackFailed", "OutOfService")


class Endpoint(ResourceType):
    """An endpoint: what it is after an update is held against what it should be."""

    def wait(self, at: Place, known: Known) -> None:
        kind = self.type_name.rpartition("::")[2]
        name, found = known[f"{kind}Name"], dict[str, Any]()
        deadline = time.monotonic() + _TIMEOUT
        while found.get(f"{kind}Status") not in _ENDED and time.monotonic() < deadline:
            time.sleep(_PAUSE if found else 0)
            found = self.describe(at, name)
        status, reason = found.get(f"{kind}Status"), found.get("FailureReason", "")
        # What SageMaker rolled back is in service too.
        if status != "InService" or (
            at.options.endpoint_handler == "compares" and self.rolled_back(found, known)
        ):
            noun = "Endpoint" if kind == "Endpoint" else "Inference component"
            raise ServiceError(f"{noun} {name} is {status}: {reason}")

    def describe(self, at: Place, name: str) -> dict[str, Any]:
        describe = getattr(at.client("sagemaker"), f"describe_{self.noun}")
        return dict(describe(**{str(self.name): name}))

    def rolled_back(self, found: dict[str, Any], known: Known) -> bool:
        """Say whether it is as it was before the update."""
        return bool(found["EndpointConfigName"] != known["EndpointConfigName"])


class InferenceComponent(Endpoint):
    _FIXED = ("EndpointName", "InferenceComponentName", "VariantName")

    def rolled_back(self, found: dict[str, Any], known: Known) -> bool:
        return bool(found.get("FailureReason"))

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created:
        """Refuse what the API cannot change: the schema has no property that needs a new one."""
        fixed = [p for p in self._FIXED if properties.get(p) != existing.properties.get(p)]
        if fixed:
            raise ServiceError(f"An inference component's {', '.join(fixed)} cannot be updated")
        return super().update(at, existing, properties)

    def delete(self, at: Place, existing: Existing) -> None:
        """Delete it, and wait until it is gone: until then its endpoint cannot be deleted."""
        super().delete(at, existing)
        name = existing.attributes["InferenceComponentName"]
        deadline = time.monotonic() + _TIMEOUT
        while time.monotonic() < deadline:
            try:
                self.describe(at, name)
            except ClientError:
                return
            time.sleep(_PAUSE)
        raise ServiceError(f"Inference component {name} is still there")
