"""Who was allowed what by the local AWS: its decisions about roles, as they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from local_sagemaker.permissions import judge
from local_sagemaker.permissions.evaluator import Asked, Decision, Policies, Statement, decide


@dataclass
class Watch:
    """What the local AWS has judged since it looks on."""

    needed: list[tuple[str, Statement, str]] = field(default_factory=list)
    """Role, statement and action of each right without which a call had been denied."""
    denied: set[tuple[str, str]] = field(default_factory=set)
    """Role, and the action that it was denied."""

    def judged(self, asked: Asked, held: Policies, decision: Decision) -> None:
        """Note a decision about a role."""
        role = asked.principal.role
        if not decision.allowed:
            self.denied.add((role, asked.action))
            return
        statements = [each for policy in held.identity for each in policy.statements]
        allowing = [each for each in statements if not each.denies and each.applies(asked)]
        without = decide(asked, replace(held, identity=()))
        if len(allowing) == 1 and not without.allowed:
            self.needed.append((role, allowing[0], asked.action))

    def has_needed(self, role: str, statement: Statement, action: str) -> bool:
        """Whether a call of the role had been denied without the statement's action."""
        return (role, statement, action) in self.needed

    def has_called(self, part_of_role: str, action: str) -> bool:
        """Whether a role with such a name has needed an action."""
        return any(part_of_role in role and action == done for role, _, done in self.needed)


@contextmanager
def watching() -> Iterator[Watch]:
    """All decisions about roles of this process, as long as it lasts."""
    looking = Watch()

    def watched(asked: Asked, held: Policies) -> Decision:
        decision = decide(asked, held)
        if asked.principal.role:
            looking.judged(asked, held, decision)
        return decision

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "decide", watched)
        yield looking
