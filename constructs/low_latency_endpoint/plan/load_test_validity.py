"""Whether a load test's result says anything about the endpoint, for the plan and the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import ErrorRule, rule
from ..errors.given_files import NUMBER, json_value, text_of
from ..errors.impossible import falling, out_of_range, refuse

LIMIT_NEEDED = rule(
    "LLT114",
    "the load test found no throughput to plan with",
    fix="Run low-latency load-test --find-limit until it confirms a limit.",
)

SCHEMA = "low-latency-endpoint/load-test-result/1"

_COUNTED = ("concurrency_per_instance", "requests", "low", "high")
_SHARES = ("confidence", "failures")
_TOKENS = ("prompt_tokens", "cached_tokens", "output_tokens")
_TEXT, _OPTIONAL = (str, None), (*NUMBER, None)
_RATE = {
    "tps_per_instance?": object,
    **{f"{name}?": _OPTIONAL for name in (*_COUNTED, *_SHARES)},
    **{f"{name}?": _TEXT for name in ("how", "when", "unsteady", "problem")},
    "lower_bound?": (bool, None),
}
#: What readers take from a result; of their own forms they have rules of their own.
_RESULT = {
    **{f"{name}?": _TEXT for name in ("source", "endpoint", "variant", "mode")},
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
    """Numbers of the limit and of the steps that no load test has."""
    limit = content.get("limit")
    limit = limit if isinstance(limit, Mapping) else {}
    for name, of in {"limit": limit, "limit.assured": limit.get("assured") or {}}.items():
        yield from out_of_range({f"{name}.{each}": of.get(each) for each in _COUNTED})
        yield from out_of_range({f"{name}.{each}": of.get(each) for each in _SHARES}, high=1.0)
        yield from falling({f"{name}.{each}": of.get(each) for each in ("low", "high")})
    for number, step in enumerate(content.get("steps") or ()):
        tokens = step.get("tokens") or {}
        told = {f"steps[{number}].tokens.{each}": tokens.get(each) for each in _TOKENS}
        yield from out_of_range({**told, f"steps[{number}].completed": step.get("completed")})


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
