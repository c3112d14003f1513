"""What an endpoint has to hold: requests, their latency, and the instances that serve them."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, ClassVar

from ..errors.frozen import dataclass
from ..facts import limits
from .effects import PLAN, Touched
from .latency_target import LatencyTarget
from .option import Option, Options
from .scaling import InstanceCounts, ScalingOptions
from .throughput import MeasuredThroughput
from .token_traffic import TokenTraffic
from .variant import FLEET

_OF_FLEET = Touched(planned=("scaling", *FLEET))


@dataclass(frozen=True, kw_only=True)
class LoadOptions(Options):
    """What an endpoint has to hold, and the fleet that holds it.

    Args:
        latency: The latency target. Default: none yet; no alarms on latency, and a warning.
        throughput: Load to hold and measured throughput. Default: not measured, so one instance per client zone and no scaling.
        tokens: Tokens of prompts and answers, of a language model whose answers are streamed: capacity is counted in them, and the KV cache's room. Default: calls alone are counted.
        streaming: Whether callers stream answers: SageMaker ends a stream after 8 minutes, a whole answer after 60 s. Default: true with tokens, or with targets of ttft or itl, else false.
        payload_bytes: Size of the callers' largest request, to check it against SageMaker's limits. Default: not checked.
        instances: Numbers of instances. Default: derived from the throughput.
        scaling: How the number of instances follows the load. Default: target tracking on invocations per instance.
    """

    leads: ClassVar[bool] = True

    latency: Annotated[
        LatencyTarget | None,
        Option(
            example={"p99": "200ms"},
            touches=Touched(
                planned=("routing", "thresholds", "token_alarms", "rollback_alarms", "warm_up")
            ),
        ),
    ] = None
    throughput: Annotated[
        MeasuredThroughput | None,
        Option(example={"peak_tps": 1000, "tps_per_instance": 200}, touches=_OF_FLEET),
    ] = None
    tokens: Annotated[
        TokenTraffic | None,
        Option(example={"input": 512, "output": 128, "shared_prefix": 0.5}, touches=_OF_FLEET),
    ] = None
    streaming: Annotated[bool | None, Option(touches=Touched((PLAN,)))] = None
    payload_bytes: Annotated[
        int | None, Option(limits.PAYLOAD, 8000000, planned=True, touches=Touched((PLAN,)))
    ] = None
    instances: Annotated[
        InstanceCounts, Option(example={"min": 2, "max": 12}, touches=_OF_FLEET)
    ] = field(default_factory=InstanceCounts)
    scaling: Annotated[
        ScalingOptions, Option(example={"scale_in_cooldown": "5m"}, touches=_OF_FLEET)
    ] = field(default_factory=ScalingOptions)
