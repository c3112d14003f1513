"""What a run at AWS has shown, and whether a run in the local AWS shows the same.

The local AWS claims to behave as AWS does: evidence from AWS is the test of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acceptance.claims import CLAIMS, Verdict, judge

_PARTS = ("off", "on", "removed", "updated")
"""Deployments within one step."""


def tape(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a run that do not depend on its names and its times, by what they are of."""
    facts: dict[str, Any] = {}
    for name, claim in CLAIMS.items():
        if (verdict := judge(claim, evidence)) is not Verdict.OPEN:
            facts[f"claim {name}"] = str(verdict)
    for name, step in evidence["steps"].items():
        saw = step.get("saw", {})
        for part, each in [
            (name, saw),
            *((f"{name}, {key}", saw[key]) for key in _PARTS if key in saw),
        ]:
            facts |= _deployment(part, each)
        if "metrics" in saw:
            facts[f"{name}: metrics"] = {
                (m["namespace"], m["metric"], tuple(sorted(m["dimensions"])))
                for m in saw["metrics"]
            }
        if "arrived" in saw:
            facts[f"{name}: a page arrives"] = saw["arrived"]
    return facts


def _deployment(name: str, saw: Mapping[str, Any]) -> dict[str, Any]:
    if "stack_status" not in saw:
        return {}
    facts = {f"{name}: stack status": saw["stack_status"], f"{name}: CDK CLI": saw["cli"]}
    before, after = saw.get("before"), saw.get("after")
    if after:
        facts[f"{name}: endpoint status"] = after["status"]
        facts[f"{name}: failure reason"] = bool(after["failure_reason"])
    if before and after:
        facts[f"{name}: another configuration"] = before["configuration"] != after["configuration"]
    return facts


def differences(seen: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Where a local run differs from one at AWS; facts that one of them lacks are no matter."""
    if seen["target"] != "aws":
        raise ValueError(f"evidence of a run at AWS is needed, not of {seen['target']!r}")
    told, ours = tape(seen), tape(here)
    found = []
    for fact in sorted(told.keys() & ours.keys()):
        expected, got = told[fact], ours[fact]
        if isinstance(expected, set):
            found += [f"{fact}: AWS has {each}" for each in sorted(expected - got)]
        elif expected != got:
            found.append(f"{fact}: {expected!r} at AWS, {got!r} here")
    return found
