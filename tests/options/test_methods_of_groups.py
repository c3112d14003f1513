"""A method that makes a group of options takes each of them, says the same of it and hands it on.

Such as ``DeploymentPolicy.rolling`` of ``Rolling``: the settings file has the group, Python the method.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING
from datetime import timedelta
from typing import Any

import pytest

import low_latency_endpoint
from low_latency_endpoint import DeploymentPolicy, RoutingStrategy
from low_latency_endpoint.facts.limit_kinds import Range
from low_latency_endpoint.options.deployment import Deployment
from low_latency_endpoint.options.option import Declared, Options, groups_in, options_of

#: Options of the class itself that a method does not take, and why.
NOT_TAKEN = {("rolling", "termination_wait"): "a rolling update keeps no old fleet that could wait"}


def methods() -> Iterator[tuple[Any, str, type[Options]]]:
    """Each class method of a public class with the name of an option, and the group it makes."""
    for public in low_latency_endpoint.__all__:
        made_by: Any = getattr(low_latency_endpoint, public)
        written = made_by if inspect.isclass(made_by) and issubclass(made_by, Options) else None
        holders = groups_in(written or getattr(made_by, "written", None))
        for each in (option for holder in holders for option in options_of(holder)):
            if isinstance(vars(made_by).get(each.name), classmethod):
                yield from ((made_by, each.name, group) for group in groups_in(each.kind))


METHODS = list(methods())


def beside(made_by: type, name: str) -> list[Declared]:
    """The options of the class that are no way of it, of which the method takes all but few."""
    if not issubclass(made_by, Deployment):
        return []
    ways = made_by.exactly_one_of
    own = [each for each in options_of(made_by) if each.name not in ways]
    return [each for each in own if (name, each.name) not in NOT_TAKEN]


def value_of(each: Declared) -> Any:
    """Another value than the default."""
    limit = each.option.limit if each.option else None
    if each.lasting:
        return timedelta(minutes=40 if each.name == "maximum_execution" else 3)
    if isinstance(limit, Range):
        return next(value for value in (limit.maximum, limit.minimum) if value != each.default)
    return True


def test_the_methods_are_found() -> None:
    assert {(made_by, name): group.__name__ for made_by, name, group in METHODS} == {
        (DeploymentPolicy, "canary"): "Canary",
        (DeploymentPolicy, "linear"): "Linear",
        (DeploymentPolicy, "all_at_once"): "AllAtOnce",
        (DeploymentPolicy, "rolling"): "Rolling",
        (RoutingStrategy, "prefix_aware"): "PrefixAware",
    }


@pytest.mark.parametrize(("made_by", "name", "group"), METHODS)
def test_a_method_takes_every_option_of_its_group(
    made_by: Any, name: str, group: type[Options]
) -> None:
    method = getattr(made_by, name)
    wanted = [*options_of(group), *beside(made_by, name)]
    taken = inspect.signature(method).parameters
    said = dict(re.findall(r"^    (\w+): (.*)$", inspect.getdoc(method) or "", re.MULTILINE))
    method_name, place = f"{made_by.__name__}.{name}", inspect.getsourcefile(inspect.unwrap(method))
    for each in wanted:
        assert each.name in taken, f"{method_name}: add {each.name} to its signature in {place}"
        default = inspect.Parameter.empty if each.name not in said else taken[each.name].default
        assert each.name in said, f"{method_name}: add {each.name} to its Args: in {place}"
        assert said[each.name] == each.text_in_file, f"{method_name}, {each.name}: the field's text"
        if default is not inspect.Parameter.empty:
            assert default == each.default, f"{method_name}, {each.name}: the field's default"
    assert taken.keys() <= {each.name for each in wanted}


@pytest.mark.parametrize(("made_by", "name", "group"), METHODS)
def test_a_method_hands_on_what_it_takes(made_by: Any, name: str, group: type[Options]) -> None:
    for each in (*options_of(group), *beside(made_by, name)):
        required = {one.name: value_of(one) for one in options_of(group) if is_required(one)}
        made = getattr(made_by, name)(**required | {each.name: value_of(each)})
        holder = getattr(made, name) if issubclass(made_by, Deployment) else made
        found = getattr(holder if hasattr(holder, each.name) else made, each.name)
        assert found == value_of(each), (
            f"{made_by.__name__}.{name}: hand {each.name} on to {group.__name__}(...) in its body"
        )


def is_required(each: Declared) -> bool:
    return each.default is MISSING
