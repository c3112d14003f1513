"""Whether a load test's result says anything about the endpoint, for all who take numbers from it.

The plan and the simulator read the same file (``load_test/result_file.py`` writes it); what the one
refuses the other must not believe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import rule

LIMIT_NEEDED = rule(
    "LLT114",
    "the load test found no throughput that a plan could rest on",
    fix="Run low-latency load-test --find-limit until it ends with a limit that it confirmed.",
)


def check_result_is_valid(content: Mapping[str, Any], where: str) -> None:
    """Refuse a result that says nothing about the endpoint, and a limit that has a problem.

    Raises
    ------
    ConfigurationError
        ``LLT114``.
    """
    limit, verdicts = content.get("limit"), content.get("verdicts")
    if isinstance(limit, Mapping) and limit.get("problem"):
        raise LIMIT_NEEDED.error(
            got=str(limit["problem"]), allowed="a limit without a problem", where=where
        )
    for each in verdicts if isinstance(verdicts, list) else ():
        if isinstance(each, Mapping) and each.get("severity") == "invalid":
            evidence = each.get("evidence")
            got = [
                str(each.get("title") or each.get("kind") or "an invalid verdict"),
                *map(str, evidence if isinstance(evidence, list) else ()),
            ]
            raise LIMIT_NEEDED.error(
                what="the load test's figures say nothing about the endpoint",
                where=where,
                got="; ".join(got),
                allowed="a result without an invalid verdict",
            )
    if not isinstance(limit, Mapping) and (content.get("interrupted") or content.get("failure")):
        raise LIMIT_NEEDED.error(
            got=f"a run of --{content.get('mode', '?')} that did not come to its end",
            allowed="a run that did",
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
