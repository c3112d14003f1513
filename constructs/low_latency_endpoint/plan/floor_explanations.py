"""A plan's shortest times: between two tokens, and before the first one of each target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..options.load import TokenLengths, TokenTraffic
from ..options.throughput import stated
from ..report.numbers import milliseconds, readable
from .alarm_thresholds import kept_for_overhead
from .decisions import Decision, PlanWarning, SummaryLine
from .plan import Plan
from .token_floors import EMBEDDING_BYTES, ITL_BELOW_FLOOR, DecodePace, decode_paces

_LONG_PROMPT_FROM = ("p95", "p99")  # targets that a prompt of the 95th percentile has to meet


class Prompt(NamedTuple):
    """The prompt that a first token has to wait for."""

    text: str
    tokens: float  # that no cache holds


class FirstTokenFloor(NamedTuple):
    """The shortest time before the first token on a type, and what a target leaves for it."""

    pace: DecodePace
    prompt: Prompt
    milliseconds: float
    percentile: str = ""  # of the target; empty without one
    limit: float = 0.0  # the model's share of the target, in milliseconds; 0 without one

    @property
    def share(self) -> float:
        """Of the model's share of the target; 0 without one."""
        return self.milliseconds / self.limit if self.limit else 0.0


def floor_lines(plan: Plan) -> Iterator[SummaryLine]:
    """The floors on the slowest type, each as a share of its tightest target."""
    paces = _paces(plan)
    if not paces:
        return
    slowest = _slowest(paces)
    parts = [_between_text(plan, slowest)]
    first = _tightest(first_token_floors(plan))
    if first is not None:
        text = f"{milliseconds(first.milliseconds, 3)} before the first, after {first.prompt.text}"
        if first.pace != slowest:
            text += f" on {first.pace.instance_type}"
        if first.limit:
            left = milliseconds(first.limit, 6)
            text += (
                f", {first.share:.0%} of the {left} that ttft_{first.percentile} leaves the model"
            )
        parts.append(text)
    unknown = [pace.instance_type for pace in paces if plan.request.tokens and pace.tflops is None]
    if unknown:
        parts.append(f"before the first not known on {', '.join(unknown)}")
    yield SummaryLine("Floors", "at the least " + "; ".join(parts))


def _between_text(plan: Plan, slowest: DecodePace) -> str:
    """The floor between tokens as a share of the tightest target."""
    text = f"{milliseconds(slowest.milliseconds, 3)} between tokens on {slowest.instance_type}"
    targets = plan.request.latency.itl_milliseconds if plan.request.latency else {}
    if not targets:
        return text
    percentile, target = min(targets.items(), key=lambda item: item[1])
    return f"{text}, {slowest.milliseconds / target:.0%} of itl_{percentile}"


def explain_floors(plan: Plan) -> Iterator[Decision[Any]]:
    """Both floors on the slowest type; notes have the other types."""
    paces = _paces(plan)
    if not paces:
        return
    pace = _slowest(paces)
    yield Decision(
        name="inter_token_floor",
        value=round(pace.milliseconds, 2),
        unit="ms",
        rule="bytes of the weights that a token reads / bandwidth of the accelerators' memory: no "
        "gap between tokens is shorter, and real ones are longer",
        inputs={
            "instance type": pace.instance_type,
            "bytes read": pace.token_bytes,
            "GB per second of an accelerator": pace.gb_per_second,
            "accelerators": pace.accelerators,
        },
        source=ITL_BELOW_FLOOR.source,
        note=_others({other.instance_type: other.milliseconds for other in paces if other != pace}),
    )
    first = _tightest(first_token_floors(plan))
    if first is not None:
        yield _first_token_floor(first, paces)


def _first_token_floor(first: FirstTokenFloor, paces: Sequence[DecodePace]) -> Decision[Any]:
    """The floor before the first token that is the largest share of its target."""
    pace, prompt = first.pace, first.prompt
    others = {
        other.instance_type: other.prompt_milliseconds(prompt.tokens)
        for other in paces
        if other != pace
    }
    of_target: dict[str, float] = {}
    if first.limit:
        of_target[f"ms that ttft_{first.percentile} leaves the model"] = first.limit
        of_target["share of that"] = round(first.share, 4)
    return Decision(
        name="first_token_floor",
        value=round(first.milliseconds, 2),
        unit="ms",
        rule="2 x parameters but for the embeddings x tokens of the prompt / the accelerators' "
        "operations per second at full use: no first token comes earlier, unless a cache holds more "
        "of the prompt",
        inputs={
            "instance type": pace.instance_type,
            "prompt": prompt.text,
            "parameters": pace.prompt_bytes // EMBEDDING_BYTES,
            "tokens that no cache holds": prompt.tokens,
            "TFLOP/s of an accelerator": pace.tflops or 0.0,
            "accelerators": pace.accelerators,
            **of_target,
        },
        source=ITL_BELOW_FLOOR.source,
        note=_others(others),
    )


def first_token_warnings(plan: Plan) -> Iterator[PlanWarning]:
    """Targets that leave the model less than computing its prompt takes."""
    texts: dict[str, list[str]] = {}
    for floor in first_token_floors(plan):
        if floor.share > 1:
            left = milliseconds(floor.limit, 6)
            target = f"ttft_{floor.percentile} leaves the model {left} for {floor.prompt.text}"
            took = f"{milliseconds(floor.milliseconds, 3)} on {floor.pace.instance_type}"
            texts.setdefault(target, []).append(took)
    if texts:
        targets = [f"{target}, which takes {', '.join(took)}" for target, took in texts.items()]
        yield PlanWarning(
            "first-token-floor",
            f"{'; '.join(targets)} at the least, by the accelerators' data sheets at full use. "
            "Shorten the prompts, choose a faster type or more accelerators, or raise the target",
        )


def first_token_floors(plan: Plan) -> list[FirstTokenFloor]:
    """Of each type and target; without a target of a mean prompt. None where nothing is known."""
    traffic, latency = plan.request.tokens, plan.request.latency
    if traffic is None:
        return []
    share = 1 - kept_for_overhead(plan.request)
    targets = latency.ttft_milliseconds if latency else {}
    limits = {name: float(stated(target) * share) for name, target in targets.items()} or {"": 0.0}
    floors = []
    for pace in _paces(plan):
        for percentile, limit in limits.items():
            prompt = prompt_of(traffic, percentile)
            least = pace.prompt_milliseconds(prompt.tokens)
            if least:
                floors.append(FirstTokenFloor(pace, prompt, least, percentile, limit))
    return floors


def prompt_of(traffic: TokenTraffic, percentile: str) -> Prompt:
    """The longest prompt whose first token is certainly within a percentile of all first tokens.

    The longer the prompt, the longer its floor: so a percentile of the times is no less than the
    floor of the same percentile of the prompts, or of a lower one that is stated.
    """
    lengths = traffic.input
    kind = "prompt"
    if not isinstance(lengths, TokenLengths):
        length: float = lengths
    elif not percentile:
        kind, length = "mean prompt", lengths.mean
    elif percentile in _LONG_PROMPT_FROM:
        kind, length = "p95 prompt", lengths.p95
    else:
        kind, length = "p50 prompt", lengths.p50
    uncached = round(length * (1 - traffic.shared_prefix), 1)
    text = f"a {kind} of {readable(round(length))} tokens"
    if traffic.shared_prefix:
        text += f" ({readable(uncached)} of them in no cache)"
    return Prompt(text, uncached)


def _paces(plan: Plan) -> list[DecodePace]:
    hub = plan.request.serving.hub
    return list(decode_paces(hub)) if hub else []


def _slowest(paces: Sequence[DecodePace]) -> DecodePace:
    return max(paces, key=lambda pace: pace.milliseconds)


def _tightest(floors: Sequence[FirstTokenFloor]) -> FirstTokenFloor | None:
    """The largest share of a target, or the longest without one; ``None`` where none is known."""
    return max(floors, key=lambda floor: (floor.share, floor.milliseconds), default=None)


def _others(floors: Mapping[str, float | None]) -> str:
    """The floors of the other types, in words."""
    return ", ".join(
        f"{name} {milliseconds(floor, 3) if floor is not None else 'not known'}"
        for name, floor in floors.items()
    )
