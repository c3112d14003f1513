"""Names that users state, each once where AWS wants it once."""

from __future__ import annotations

from typing import NamedTuple

from aws_cdk import Stack
from constructs import IConstruct

from ..options.rules import NAME_TWICE
from .construct_tree import kept, outermost_stack, path_of, region_of, root_of, stack_of
from .template_values import is_token


class _Holder(NamedTuple):
    """Who has a name, and in which stack."""

    path: str
    stack: Stack

    def shares_names_with(self, other: Stack) -> bool:
        """Whether both are one deployment, or go to the same account and Region as far as is known."""
        return self.stack is other or (
            _environment(self.stack) == _environment(other)
            and not any(map(is_token, _environment(other)))
        )


def claim_name(
    owner: IConstruct, kind: str, name: str | None, *, in_any_case: bool = False
) -> None:
    """Refuse a name that another construct of the app has stated for the same account and Region.

    ``kind`` is in the plural; ``in_any_case`` says that AWS takes ``A`` and ``a`` for one name.
    """
    if name is None or is_token(name):
        return
    stack, path = outermost_stack(stack_of(owner)), path_of(owner)
    names: dict[tuple[str, str], list[_Holder]] = kept(root_of(owner), "stated_names", dict)
    holders = names.setdefault((kind, name.lower() if in_any_case else name), [])
    for holder in holders:
        if holder.shares_names_with(stack):
            raise NAME_TWICE.error(
                got=name,
                allowed=f"another name than that of {holder.path}",
                what=f"two {kind} have the same name",
                where=path,
            )
    holders.append(_Holder(path, stack))


def _environment(stack: Stack) -> tuple[str, str]:
    return str(kept(stack, "account", lambda: stack.account)), region_of(stack)
