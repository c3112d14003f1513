"""Whether a load test's result says anything about the endpoint, for the plan and the simulator."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ..errors import ErrorRule, rule
from ..errors.given_files import NUMBER, json_value, text_of
from ..errors.impossible import falling, out_of_range, refuse
from ..report.numbers import readable

LIMIT_NEEDED = rule(
    "LLT114",
    "the load test found no throughput to plan with",
    fix="Run low-latency load-test --find-limit until it confirms a limit.",
)

SCHEMA = "low-latency-endpoint/load-test-result/1"

_COUNTED = ("concurrency_per_instance", "low", "high")
_SHARES = ("confidence", "failures", "requests")
_ROUNDED = 0.99  # of a rate, what rounding down to three digits leaves at least
_TOKENS = ("prompt_tokens", "cached_tokens", "output_tokens")
_TEXTS = ("source", "endpoint", "variant", "mode", "failure", "started_at", "ended_at")
_TEXT, _OPTIONAL = (str, None), (*NUMBER, None)
_RATE = {
    "tps_per_instance?": object,
    **{f"{name}?": _OPTIONAL for name in (*_COUNTED, *_SHARES)},
    **{f"{name}?": _TEXT for name in ("how", "when", "unsteady", "problem")},
    "lower_bound?": (bool, None),
    "confirmed?": (bool, None),
}
#: What readers take from a result; of their own forms they have rules of their own.
_RESULT = {
    **{f"{name}?": _TEXT for name in _TEXTS},
    **{f"{name}?": (bool, None) for name in ("held", "interrupted")},
    "instances?": object,
    "fleet?": ({"instance_type?": _TEXT}, None),
    "limit?": ({**_RATE, "assured?": (_RATE, None)}, object),
    "latency_target?": ({"targets_ms?": {str: NUMBER}, "allowed_errors?": NUMBER}, None),
    "verdicts?": ([{"severity?": _TEXT, "title?": _TEXT, "kind?": _TEXT}], None),
    "steps?": (
        [
            {
                "purpose?": _TEXT,
                "completed?": _OPTIONAL,
                "sent?": _OPTIONAL,
                "tokens?": ({f"{name}?": _OPTIONAL for name in _TOKENS}, None),
                "step?": ({"arrivals?": (dict, None)}, None),
            }
        ],
        None,
    ),
    "service_time_ms?": ({"quantiles?": {str: NUMBER}, "samples?": [NUMBER]}, None),
    "slope?": _OPTIONAL,
    "concurrency?": object,
    "rate?": object,
}


def read_result(path: str | Path, unreadable: ErrorRule) -> Mapping[str, Any]:
    """The content of a result file; the reader's own rule for one that is none."""
    text, where = text_of(path, unreadable), str(path)
    try:
        content = json_value(text)
        check_result_form(content, unreadable, where)
        content = json_value(text, _RESULT)
    except ValueError as problem:
        raise unreadable.error(got=f"{problem}", allowed="a file of JSON", where=where) from None
    refuse(unreadable, where, _impossible(content))
    return dict(content)


def _impossible(content: Mapping[str, Any]) -> Iterator[str]:
    """What no load test's result says: numbers beyond their range, and parts that disagree."""
    limit = content.get("limit")
    if isinstance(limit, Mapping):
        yield from impossible_limit(limit, "limit.")
        yield from _other_run(content, limit)
    started, ended = content.get("started_at") or "", content.get("ended_at") or ""
    if _moment(ended) < _moment(started):
        yield f"the run ended at {ended}, before it started at {started}"
    yield from out_of_range({"rate": _number(content.get("rate"))})
    yield from out_of_range({"instances": _number(content.get("instances"))}, low=1)
    goal = content.get("latency_target") or {}
    yield from out_of_range(
        {f"latency_target.{name}": value for name, value in (goal.get("targets_ms") or {}).items()}
    )
    yield from out_of_range({"latency_target.allowed_errors": goal.get("allowed_errors")}, high=1)
    for number, step in enumerate(content.get("steps") or ()):
        yield from _impossible_step(step, f"steps[{number}]")
    yield from _impossible_times(content.get("service_time_ms") or {})


def impossible_limit(limit: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """What no limit is, in the form of a result's file: for who writes one, and who reads it.

    The limit of an instance is the rate that held, rounded down to three digits. A plan may rest on
    it, or on a lower rate, which holds with a confidence and rests on requests.
    """
    assured = limit.get("assured") or {}
    for name, rates in {place: limit, f"{place}assured.": assured}.items():
        yield from out_of_range({f"{name}{each}": rates.get(each) for each in _COUNTED})
        yield from out_of_range({f"{name}failures": rates.get("failures")}, high=1)
        yield from out_of_range({f"{name}requests": rates.get("requests")}, low=1)
        yield from _no_confidence(rates.get("confidence"), f"{name}confidence")
    tps = _number(limit.get("tps_per_instance"))
    if tps is None:
        return
    stated, low = {f"{place}tps_per_instance": tps}, limit.get("low")
    yield from falling({**stated, f"{place}low": low, f"{place}high": limit.get("high")})
    yield from falling({f"{place}low, rounded down": (low or 0) * _ROUNDED, **stated})
    lower = _number(assured.get("tps_per_instance"))
    yield from falling({f"{place}assured.tps_per_instance": lower, **stated})
    finished = not limit.get("problem") and not limit.get("lower_bound")
    if finished and limit.get("confirmed") is False:
        yield f"{place}confirmed is false, of a limit without a problem"


def _no_confidence(confidence: float | None, name: str) -> Iterator[str]:
    """A confidence is above the half that a coin has, and nothing is certain."""
    if confidence is not None and not 0.5 <= confidence < 1:
        yield f"{name} is {readable(confidence)}, not from 0.5 to below 1"


def _other_run(content: Mapping[str, Any], limit: Mapping[str, Any]) -> Iterator[str]:
    """A limit of another run than the one around it."""
    stopped = bool(content.get("interrupted") or content.get("failure"))
    problem, bound = limit.get("problem"), limit.get("lower_bound")
    if stopped and not problem and not bound:
        yield "the limit is no lower bound, of a run that was stopped before its end"
    if content.get("held") is False and not stopped and not problem:
        yield "held is false, of a limit without a problem"
    low, instances = limit.get("low"), _number(content.get("instances"))
    rate = _number(content.get("rate"))
    if low is None or rate is None or instances is None:
        return
    if not math.isclose(rate, low * instances, rel_tol=1 - _ROUNDED):
        of_all = f"{readable(low * instances)} of limit.low and {readable(instances)} instances"
        yield f"rate is {readable(rate)}, not the {of_all}"


def _impossible_step(step: Mapping[str, Any], place: str) -> Iterator[str]:
    tokens = step.get("tokens") or {}
    yield from out_of_range({f"{place}.tokens.{name}": tokens.get(name) for name in _TOKENS})
    cached_first = ("cached_tokens", "prompt_tokens")
    yield from falling({f"{place}.tokens.{name}": tokens.get(name) for name in cached_first})
    counts = {f"{place}.{name}": step.get(name) for name in ("completed", "sent")}
    yield from out_of_range(counts)
    yield from falling(counts)


def _impossible_times(times: Mapping[str, Any]) -> Iterator[str]:
    """Service times that are none, or fall from one probability to the next."""
    samples = times.get("samples") or ()
    if samples and min(samples) <= 0:
        yield f"service_time_ms.samples has {min(samples)}, not above 0"
    by_share: dict[float, tuple[str, float]] = {}
    for text, value in (times.get("quantiles") or {}).items():
        share, name = _share(text), f"service_time_ms.quantiles.{text}"
        if share is None:
            yield f"{name} is of no probability from 0 to 1"
        elif share in by_share:
            yield f"{name} and {by_share[share][0]} are of one probability"
        elif not value > 0:
            yield f"{name} is {value}, not above 0"
        else:
            by_share[share] = (name, value)
    yield from falling(dict(by_share[share] for share in sorted(by_share)))


def _share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


def _number(value: Any) -> float | None:
    """Of what has a rule of its own for another kind."""
    return value if isinstance(value, NUMBER) and not isinstance(value, bool) else None


def _moment(text: str) -> float:
    """In seconds; NaN, which comes before nothing, where the text is no time with its zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return math.nan if moment.tzinfo is None else moment.timestamp()


def check_result_form(content: Any, unreadable: ErrorRule, where: str) -> None:
    """Refuse what is not an object with the schema."""
    found = content.get("schema") if isinstance(content, Mapping) else type(content).__name__
    if found != SCHEMA:
        raise unreadable.error(
            got=f"schema {found!r}", allowed=f'an object with "schema": "{SCHEMA}"', where=where
        )


def check_result_is_valid(content: Mapping[str, Any], where: str) -> None:
    """Refuse a result that says nothing about the endpoint, and a limit that has a problem."""
    limit, verdicts = content.get("limit"), content.get("verdicts")
    if isinstance(limit, Mapping) and limit.get("problem"):
        raise LIMIT_NEEDED.error(
            got=str(limit["problem"]), allowed="a limit without a problem", where=where
        )
    for verdict in verdicts if isinstance(verdicts, list) else ():
        if isinstance(verdict, Mapping) and verdict.get("severity") == "invalid":
            evidence = verdict.get("evidence")
            got = [
                str(verdict.get("title") or verdict.get("kind") or "an invalid verdict"),
                *map(str, evidence if isinstance(evidence, list) else ()),
            ]
            raise LIMIT_NEEDED.error(
                what="the load test's figures are not valid for the endpoint",
                where=where,
                got="; ".join(got),
                allowed="a result without an invalid verdict",
            )
    if not isinstance(limit, Mapping) and (content.get("interrupted") or content.get("failure")):
        raise LIMIT_NEEDED.error(
            got=f"a run with {content.get('mode', '?')} that did not finish",
            allowed="a completed run",
            where=where,
        )


def other_instance_type(ran_on: str, planned: str) -> str:
    """What to say when a load test ran on another type than the settings have; else empty."""
    if not ran_on or ran_on == planned:
        return ""
    return (
        f"the load test ran on {ran_on}, the settings have {planned}: measure again on the "
        "type that is planned"
    )


def other_endpoint(called: str, planned: str, names: Mapping[str, str | None]) -> str:
    """What to say when a load test called another endpoint than the planned one; else empty.

    ``names``: by the endpoints' keys their names at AWS, None where CloudFormation gives the name.
    Of such an endpoint it is known only that the others' names are not its own.
    """
    name = names[planned]
    if not called or called in (planned, name):
        return ""
    others = {*names, *names.values()} - {planned}
    if name is None and called not in others:
        return ""
    return f"the load test called {called}, the settings' endpoint is {name or planned}"
