"""ARNs and images of other Regions, accounts and partitions, in every option that has one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.homes import Home
from low_latency_endpoint.options.option import Declared, Options, groups_in, options_of
from low_latency_endpoint.settings import Settings

ROWS = yaml.safe_load(Path(__file__).with_name("homes.yaml").read_text("utf-8"))
HERE = Home("us-east-1", "123456789012")


def declared(group: type[Options], seen: set[type[Options]]) -> Iterator[Declared]:
    """Every option that a file can state, of a group and of those below it."""
    if group in seen:
        return
    seen.add(group)
    for option in options_of(group):
        if option.option is not None:
            yield option
        for below in groups_in(option.kind):
            yield from declared(below, seen)


OPTIONS = list(declared(Settings, set()))


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_each_option_that_is_an_arn_or_an_image_is_compared(option):
    """Of a new one too: by what its own example is."""
    example = option.option.example
    named = isinstance(example, str) and (example.startswith("arn:") or ".dkr.ecr." in example)
    assert getattr(option.option.limit, "has_home", False) == named


def test_there_are_such_options():
    assert sum('"arn:' in json.dumps(str(option.option.example)) for option in OPTIONS) >= 9


@pytest.mark.parametrize(("named", "code"), ROWS)
def test_what_has_to_be_at_home(named, code):
    """CreateModel, CreateEndpointConfig and PutMetricAlarm take things of their own Region; IAM
    passes roles of its own account."""
    if code is None:
        HERE.check(named)
        return
    with pytest.raises(ConfigurationError, match=code):
        HERE.check(named)


@pytest.mark.parametrize("home", [Home(""), Home("", "123456789012"), Home("us-east-1")])
def test_what_is_not_known_is_not_compared(home):
    home.check("arn:aws:iam::999999999999:role/mine" if not home.account else "churn/12")
    if not home.region:
        home.check("arn:aws-cn:sns:cn-north-1:123456789012:on-call")
