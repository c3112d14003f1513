"""What a construct names by an ARN or as an image, compared with where its stack is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from constructs import IConstruct

from ..facts.homes import Home
from .construct_tree import kept, path_of, region_of, stack_of
from .template_values import is_token


def check_home(construct: IConstruct, *named: str | None) -> None:
    """Raise where one of these is known to be elsewhere: LLE950 to LLE952; tokens pass."""
    known = [each for each in named if each is not None and not is_token(each)]
    if known:
        home = _home_of(construct)
        for each in known:
            home.check(each, path_of(construct))


def check_homes_of(construct: IConstruct, resolved: Iterable[Mapping[str, Any]]) -> None:
    """The same of the resources of statements, which are resolved."""
    check_home(construct, *_texts(resolved))


def _texts(statements: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for statement in statements:
        resources = statement["Resource"]
        listed = resources if isinstance(resources, list) else [resources]
        yield from (resource for resource in listed if isinstance(resource, str))


def _home_of(construct: IConstruct) -> Home:
    stack = stack_of(construct)
    account = str(kept(stack, "account", lambda: stack.account))
    region = region_of(construct)
    return Home("" if is_token(region) else region, "" if is_token(account) else account)
