"""Instance types of hosting."""

from __future__ import annotations

from ..errors.frozen import dataclass
from ..facts.instance_types import InstanceFacts, instance_facts
from ..facts.limits import INSTANCE_TYPE
from ..options.argument_kinds import checked_arguments
from ..synthesis.template_values import check, is_token


@checked_arguments
@dataclass(frozen=True)
class InstanceType:
    """A hosting instance type, such as ``ml.g5.xlarge``; also one this library does not know.

    Parameters
    ----------
    name : str
        Such as ``ml.m5.xlarge``.

    Raises
    ------
    ConfigurationError
        LLE405 when the name is not ``ml.<family>.<size>``.

    Examples
    --------
    >>> from low_latency_endpoint import InstanceType
    >>> InstanceType("ml.m5.12xlarge").facts.vcpus
    48
    """

    name: str

    def __post_init__(self) -> None:
        check(INSTANCE_TYPE, self.name, "InstanceType, name")

    @property
    def facts(self) -> InstanceFacts | None:
        """What is known of the type: vCPUs, memory, accelerators, storage; None if unknown."""
        return None if is_token(self.name) else instance_facts(self.name)

    def __str__(self) -> str:
        return self.name


def instance_type_of(stated: InstanceType | str) -> InstanceType:
    """An instance type that may be stated by its name."""
    return InstanceType(stated) if isinstance(stated, str) else stated
