"""A number that CloudFormation may fill in later breaks no rule: each option with a limit is given a token.

Those that are calculated with say so: ``known`` or ``planned`` in their ``Option``, which refuse it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from itertools import permutations
from typing import Annotated, Any

import aws_cdk as cdk
import pytest

from low_latency_endpoint.errors.findings import Finding, finding
from low_latency_endpoint.errors.frozen import dataclass
from low_latency_endpoint.facts import limits
from low_latency_endpoint.facts.limit_kinds import Range
from low_latency_endpoint.options.annotations import alternatives, parts_of
from low_latency_endpoint.options.option import (
    NEEDS_ANOTHER,
    Declared,
    Option,
    Options,
    options_of,
    read,
)
from tests.option_groups import groups

GROUPS = sorted(groups(), key=lambda group: group.__name__)


def numbers(group: type[Options]) -> list[Declared]:
    """The options that are one number, in any unit."""
    return [
        each
        for each in options_of(group)
        if each.option is not None and isinstance(each.option.limit, Range)
        if {int, float}.intersection(part for part in parts_of(each.kind) if isinstance(part, type))
        if not any(getattr(part, "__origin__", None) is not None for part in parts_of(each.kind))
    ]


def takes_tokens(each: Declared) -> bool:
    return each.option is not None and not (each.option.known or each.option.planned)


def codes(group: type[Options], values: Mapping[str, Any]) -> set[str]:
    """What is wrong with the values, and of a group that holds this one, with it as a whole."""
    made, found = read(group, values, left_out(group, values))
    for holder in GROUPS:
        for each in options_of(holder):
            if group in alternatives(each.kind):
                stated = {each.name: made}
                found += read(holder, stated, left_out(holder, stated))[1]
    return {error.code for _, error in found}


def left_out(group: type[Options], values: Mapping[str, Any]) -> list[str]:
    """What the group requires and nobody states here: a rule that asks for it is not judged."""
    required = [each.name for each in options_of(group) if each.default is MISSING]
    return [name for name in required if name not in values]


def added_by_a_token(group: type[Options]) -> Iterator[str]:
    """Rules that a token breaks where the example does not: alone, and beside one other number."""
    token = cdk.Token.as_number({"Ref": "Given"})
    examples = {each.name: each.option.example for each in numbers(group) if each.option}
    pairs = [*permutations(examples, 2), *((name, name) for name in examples)]
    taking = {each.name for each in numbers(group) if takes_tokens(each)}
    for name, other in pairs:
        if name in taking:
            values = {other: examples[other], name: examples[name]}
            for code in sorted(codes(group, values | {name: token}) - codes(group, values)):
                yield (
                    f"{code}: {group.__name__}.{name} beside {other}: ask is_token (facts/"
                    "token_values.py) in the rule before it compares, or say known=True or "
                    "planned=True in the Option if nothing can be done without the number"
                )


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_a_rule_passes_a_number_that_is_known_at_deployment_only(group: type[Options]) -> None:
    assert list(added_by_a_token(group)) == []


@dataclass(frozen=True, kw_only=True)
class Batches(Options):
    up: Annotated[int, Option(limits.ROLLING_BATCH_PERCENT, 25)] = 25
    """A share. Default: 25."""
    back: Annotated[int | None, Option(limits.ROLLING_BATCH_PERCENT, 10)] = None
    """Another. Default: up."""

    def _rules(self) -> Iterator[Finding]:
        if self.back is not None and self.back > self.up:
            yield finding(NEEDS_ANOTHER, "back", got=self.back, allowed=self.up)


def test_a_rule_that_calculates_with_a_token_is_found() -> None:
    [found] = added_by_a_token(Batches)
    assert found.startswith(f"{NEEDS_ANOTHER.code}: Batches.up beside back: ask is_token")
