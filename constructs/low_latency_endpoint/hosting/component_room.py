"""What the copies of inference components need, held against the instances that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jsii
from constructs import IValidation

from ..facts.instance_types import InstanceFacts
from ..facts.rules import COPIES_DO_NOT_FIT
from ..synthesis.annotations import warn
from ..synthesis.template_values import is_token
from .endpoint_interface import IEndpoint
from .variant import VariantAttributes


class ComponentCopies:
    """The copies of one component: what each needs, how many there are first, and at most."""

    def __init__(self, variant: VariantAttributes, needs: dict[str, Any], first: int) -> None:
        self.variant = variant
        self.needs = needs
        self.first = first
        self.most = first

    def scale_to(self, most: int, where: str) -> None:
        """Let there be more of them, as far as they fit by themselves."""
        self.check(most, where)
        self.most = most

    def check(self, count: int, where: str) -> None:
        """Hold what so many copies need against the instance type, as far as both are known."""
        variant = self.variant
        for instance_type in variant.instance_types:
            if instance_type.facts is None:
                continue
            for what, need, has in _needs_of(self.needs, instance_type.facts):
                fitting = int(has // need)
                if fitting and (
                    variant.max_instances is None
                    or is_token(variant.max_instances)
                    or is_token(count)
                    or count <= fitting * variant.max_instances
                ):
                    continue
                fleet = f" on {variant.max_instances} instances at most" if fitting else ""
                raise COPIES_DO_NOT_FIT.error(
                    got=f"{count if fitting else 1} copies with {need:g} {what} each",
                    allowed=f"{has:g} {what} on an {instance_type.name}{fleet}",
                    where=where,
                )


@jsii.implements(IValidation)
class SharedRoom:
    """The components of an endpoint together on its instances: the first copies, and the most.

    The first copies have to fit. The most copies are known when all components are made, so a
    warning about them comes at synthesis.
    """

    def __init__(self, endpoint: IEndpoint) -> None:
        self._endpoint = endpoint
        self._components: list[ComponentCopies] = []
        self._warned: set[str] = set()  # an app may be synthesised more than once
        endpoint.node.add_validation(self)

    def add(self, component: ComponentCopies, where: str) -> None:
        """One component more, whose first copies fit beside the others."""
        component.check(component.first, where)
        self._components.append(component)
        variant = component.variant
        neighbors = self._of(variant)
        for what, need, has in _beyond_room(variant, neighbors, lambda copies: copies.first):
            raise COPIES_DO_NOT_FIT.error(
                got=f"{len(neighbors)} components whose copies need {need:g} {what}",
                allowed=f"{has:g} {what} on {variant.max_instances} instances at most",
                where=where,
            )

    def validate(self) -> list[str]:
        """Warn of each variant that does not hold the most copies; there is never a complaint."""
        variants = {component.variant.name: component.variant for component in self._components}
        for name, variant in variants.items():
            if name not in self._warned:
                self._warned.add(name)
                self._warn_of(variant)
        return []

    def _warn_of(self, variant: VariantAttributes) -> None:
        neighbors = self._of(variant)
        beyond = _beyond_room(variant, neighbors, lambda copies: copies.most)
        short = [f"{need:g} of {has:g} {what}" for what, need, has in beyond]
        if short:
            warn(
                self._endpoint,
                "copiesTogether",
                f"At their most copies, the {len(neighbors)} inference components of the variant "
                f"{variant.name} ask for {', '.join(short)} on {variant.max_instances} instances. "
                "Copies that find no room do not serve. Lower max_copies or raise the "
                "ComponentHost's max_instances, unless the components have their peaks at "
                "different times.",
            )

    def _of(self, variant: VariantAttributes) -> list[ComponentCopies]:
        return [
            component for component in self._components if component.variant.name == variant.name
        ]


def _beyond_room(
    variant: VariantAttributes,
    components: Sequence[ComponentCopies],
    count_of: Callable[[ComponentCopies], int],
) -> Iterator[tuple[str, float, float]]:
    """The resources that so many copies exceed: what, needed, and there on all instances.

    Copies that only the deployment knows count as none.
    """
    most = variant.max_instances
    if most is None or is_token(most):
        return
    known = [component for component in components if not is_token(count_of(component))]
    for instance_type in variant.instance_types:
        if instance_type.facts is None:
            continue
        needed: dict[str, float] = {}
        held: dict[str, float] = {}
        for component in known:
            for what, need, has in _needs_of(component.needs, instance_type.facts):
                needed[what] = needed.get(what, 0) + need * count_of(component)
                held[what] = has * most
        for what, need in needed.items():
            if need > held[what]:
                yield what, need, held[what]


def _needs_of(needs: dict[str, Any], facts: InstanceFacts) -> Iterator[tuple[str, float, float]]:
    """What a copy needs and an instance has: what is known and not a token."""
    for what, key, has in (
        ("accelerators", "number_of_accelerator_devices_required", facts.accelerator_count or 0),
        ("MiB of memory", "min_memory_required_in_mb", 1024 * (facts.memory_gib or 0)),
        ("vCPUs", "number_of_cpu_cores_required", facts.vcpus or 0),
    ):
        need = needs[key]
        if need is not None and not is_token(need):
            yield what, need, has
