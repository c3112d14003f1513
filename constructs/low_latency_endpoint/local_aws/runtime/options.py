"""How the local runtime behaves; what AWS fixes is the default."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..model_servers.specifications import ModelServer, from_document, to_document

__all__ = ["RuntimeOptions"]

_INTERFACES_STAY = 1200.0
"""Longer than the 15 minutes for which CloudFormation tries to delete a security group: stacks do
fail to delete, which is all that is known (cloudformation-coverage-roadmap issue 1327)."""

LARGEST_PAYLOAD = 25 * 1024 * 1024
"""Source: SageMaker developer guide, "Model deployment options" (25 MB for real time)."""


@dataclass(frozen=True)
class RuntimeOptions:
    """Settings of the local runtime.

    Parameters
    ----------
    model_servers
        Model servers by image; see `model_server_for`. An endpoint with none of them answers with
        its request and is in service at once; with one of them it is started, updated and scaled
        as AWS does.
    invocation_timeout
        Real seconds that a model may take; by default 60, as at AWS.
    stream_timeout
        Real seconds that a response stream may take; by default 480, as at AWS.
    provision_time
        Seconds by the clock from the order of an instance to the start of its container; by
        default 0. At AWS it is minutes.
    startup_timeout_limit
        Real seconds that a model server of its own process may take to become healthy, whatever
        the variant allows; by default no limit but the variant's.
    interfaces_stay
        Seconds by the clock for which SageMaker's network interfaces stay when their fleet has
        ended. By default 20 minutes; by a clock that is not faster than real time one second, and
        none by one that stands still, so that nobody waits for real minutes.
    interfaces_need_role
        Whether they stay for good when the execution role, or its right to delete them, has gone
        before they have. Not documented; by default yes, which is the worse.
    routers
        Routers in front of the instances; connections are dealt to them in turn, and each sees
        only the outstanding requests it sent itself. By default 1.
    zone_affinity
        Send a request that came by a zone's name to that zone's instances when there are any; by
        default no: how SageMaker's routing meets zones is not documented.
    requests_per_second
        Beyond so many each second InvokeEndpoint is throttled; by default never.
    clock_speed
        Seconds of the runtime's clock per real second; 0 stands still until it is advanced. By
        default 1.
    clock_start
        Where the runtime's clock starts, in seconds since 1970; by default now. Metrics of a fast
        clock that starts in the past lie in the past, where reports look for them.
    seed
        Of the random choices; by default they differ from run to run.
    """

    model_servers: Mapping[str, ModelServer] = field(default_factory=dict)
    invocation_timeout: float = 60.0
    stream_timeout: float = 480.0
    provision_time: float = 0.0
    startup_timeout_limit: float | None = None
    interfaces_stay: float | None = None
    interfaces_need_role: bool = True
    routers: int = 1
    zone_affinity: bool = False
    requests_per_second: float | None = None
    clock_speed: float = 1.0
    clock_start: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.routers < 1:
            raise ValueError(f"at least one router is needed: {self.routers}")
        for name in ("invocation_timeout", "stream_timeout"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0: {getattr(self, name)}")
        for name in ("provision_time", "clock_speed", "interfaces_stay"):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} must not be negative: {getattr(self, name)}")

    def interfaces_time(self, speed: float) -> float:
        """Seconds for which network interfaces stay, by a clock of this speed."""
        if self.interfaces_stay is not None:
            return self.interfaces_stay
        return _INTERFACES_STAY if speed > 1 else min(speed, 1.0)

    def to_json(self) -> str:
        """Write them for another process."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        fields["model_servers"] = {n: to_document(s) for n, s in self.model_servers.items()}
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> RuntimeOptions:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        fields["model_servers"] = {n: from_document(d) for n, d in fields["model_servers"].items()}
        return cls(**fields)
