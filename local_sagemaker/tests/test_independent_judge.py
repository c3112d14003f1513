"""3,000 random requests, and what an independent judge of IAM policies said of each.

Where it differs from the evaluator, a text of one of the kinds below stands in a policy, and its other
reading gives what the judge said. Any other difference is a fault.
"""

from __future__ import annotations

import copy
import itertools
import json
import lzma
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from local_sagemaker.permissions.evaluator import (
    Asked,
    Policies,
    Policy,
    Principal,
    as_texts,
    decide,
    is_like,
    read_policy,
)

CASES = Path(__file__).parent / "data" / "iam-cases.jsonl.xz"
Case = Mapping[str, Any]

AWS_SAYS = {
    "network": 'Condition operators: "standard CIDR format"; 0.0.0.0/0 has every address of IPv4',
    "empty": 'Condition operators: Null "false" is "the key exists and its value is not null"',
    "date": 'Condition operators: "or in epoch (UNIX) time"; aws:EpochTime is in seconds',
    "variable": 'Variables: "Inverted condition operators [...] do match against a null value"',
    "no resource": 'NotResource: "matches every resource except those specified"',
}
"""What the evaluator follows, by the page of IAM's user guide."""
OPEN = {
    "type": '"cannot use a wildcard in the portion [...] that specifies the resource type" against '
    '"within the individual segments"',
    "colon": '"can expand to match beyond the colon boundaries", said of a `*` that ends a segment',
    "ARN": '"each of the six components is checked separately": of `*` alone nothing is said',
    "everybody": 'role, session and user ARNs are spoken of, and not Principal "*"',
    "NotResource": '"will not match any resource" against "entire statement to be invalid"',
}
"""What the pages leave open: the evaluator takes the stricter reading. `docs/limits.md` says so."""


class Site(NamedTuple):
    """A text that may be read otherwise: where it stands, and what it means then."""

    kind: str
    place: Any
    key: Any
    meaning: Any


@pytest.mark.parametrize("number", range(10))
def test_differences_from_an_independent_judge_are_what_aws_says(number: int) -> None:
    lines = lzma.decompress(CASES.read_bytes()).decode().splitlines()
    assert len(lines) == 3000
    for case in map(json.loads, lines[number::10]):
        found, judged = verdict(case), case["independent_judge"]
        kinds = () if found == judged else kinds_of_difference(case)
        assert set(kinds) <= AWS_SAYS.keys() | OPEN.keys(), (case["id"], found, judged)
        assert found == judged or found != "Allowed" or not OPEN.keys() & set(kinds), case["id"]


def kinds_of_difference(case: Case) -> tuple[str, ...]:
    """Give the fewest kinds of text whose other reading gives what the judge said."""
    numbers = dict[str, list[int]]()
    for number, site in enumerate(sites(case)):
        numbers.setdefault(site.kind, []).append(number)
    known = [kind for kind in (*AWS_SAYS, *OPEN) if kind in numbers]
    for kinds in (*((kind,) for kind in known), *itertools.combinations(known, 2)):
        read = [number for kind in kinds for number in numbers[kind]]
        if case["independent_judge"] in readings(case, read):
            return kinds
    return ("unknown",)


def readings(case: Case, numbers: list[int]) -> Iterator[str]:
    """Judge a case with each one of its texts read otherwise, and with all of them."""
    for some in ([number] for number in numbers):
        yield verdict(read_otherwise(case, some))
    yield verdict(read_otherwise(case, numbers))


def read_otherwise(case: Case, numbers: Iterable[int]) -> Case:
    other = copy.deepcopy(case)
    found = list(sites(other))
    for number in numbers:
        found[number].place[found[number].key] = found[number].meaning
    return other


def verdict(case: Case) -> str:
    policies = Policies(
        identity=tuple(
            policy for document in case.get("identity", []) for policy in read(document)
        ),
        resource_decides=case["action"].startswith("kms:"),
        resource=next(read(case.get("rp")), None),
        **{kind: next(read(case.get(kind)), None) for kind in ("boundary", "session", "endpoint")},
    )
    found = decide(asked(case), policies)
    if found.allowed:
        return "Allowed"
    return "ExplicitlyDenied" if "explicit deny" in found.reason else "ImplicitlyDenied"


def read(document: Mapping[str, Any] | None) -> Iterator[Policy]:
    if document:
        yield read_policy(json.dumps(document))


def asked(case: Case) -> Asked:
    context = {
        key.lower(): tuple(value) if isinstance(value, list) else value
        for key, value in case["ctx"].items()
    }
    who = Principal(case["principal"], case["pacct"], case.get("role", ""))
    return Asked(who, case["action"], case["resource"], case["racct"], context)


# --------------------------------------------------------------------------- what may be read otherwise


def sites(case: Case) -> Iterator[Site]:
    others = [case[kind] for kind in ("boundary", "session", "rp", "endpoint") if kind in case]
    for document in (*case.get("identity", []), *others):
        for statement in document["Statement"]:
            yield from sites_of_resources(case, statement)
            yield from sites_of_conditions(case, statement)
    for statement in case.get("rp", {}).get("Statement", []):
        if statement["Effect"] == "Allow" and statement["Principal"] in ("*", {"AWS": "*"}):
            yield Site("everybody", statement, "Principal", {"AWS": case["principal"]})


def sites_of_resources(case: Case, statement: dict[str, Any]) -> Iterator[Site]:
    name = "Resource" if "Resource" in statement else "NotResource"
    patterns = statement[name] = as_texts(statement[name])
    # In doubt a pattern is wide where that denies, and narrow where it would allow.
    denies, none = statement["Effect"] == "Deny", "arn:aws:none:::none"
    other = none if denies == (name == "Resource") else case["resource"]
    for number, pattern in enumerate(patterns):
        if name == "NotResource" and "${" in pattern:
            yield Site("NotResource", patterns, number, "*" if denies else none)
        elif name == "NotResource" and case["resource"] == "*":
            yield Site("no resource", patterns, number, "*")
        elif is_like(pattern, case["resource"]) and pattern != case["resource"]:
            wild_type = re.match(r"[^/:]*[*?][^/:]*[/:]", pattern.split(":", 5)[-1])
            yield Site("type" if wild_type else "colon", patterns, number, other)


def sites_of_conditions(case: Case, statement: dict[str, Any]) -> Iterator[Site]:
    block, context = statement.get("Condition", {}), asked(case).context
    lines = [(operator, key) for operator, keys in block.items() for key in keys]
    for operator, key in lines:
        texts = as_texts(block[operator][key])
        if kind := kind_of_condition(operator, context.get(key.lower()), texts):
            alone = {"Effect": statement["Effect"], "Action": "*", "Resource": "*"}
            alone["Condition"] = {operator: {key: texts}}
            holds = next(read({"Version": "2012-10-17", "Statement": alone})).statements[0]
            other = copy.deepcopy(block)
            del other[operator][key]
            # Every request brings this key, so it is what the line was not.
            other.setdefault("Null", {})["aws:PrincipalArn"] = str(holds.applies(asked(case)))
            yield Site(kind, statement, "Condition", other)


def kind_of_condition(operator: str, given: Any, texts: list[str]) -> str:
    kinds = {
        "network": "0.0.0.0/0" in texts,
        "empty": operator == "Null" and given == (),
        "date": "Date" in operator,
        "variable": "Not" in operator and "${" in str(texts),
        "ARN": "Arn" in operator and "*" in texts,
    }
    return next((kind for kind, has in kinds.items() if has), "")
