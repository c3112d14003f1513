"""What a variant serves, and on which instances: checked when it is made, whoever makes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from ..errors.frozen import dataclass
from ..facts.images import check_ami_runs_on, check_image_runs_on, needed_inference_ami
from ..facts.instance_types import InstanceFacts, instance_facts, unchecked
from ..facts.limit_kinds import check_known
from ..facts.limits import IMAGE_URI, INFERENCE_AMI, INSTANCE_TYPE
from ..options.argument_kinds import checked_arguments
from ..options.variant import PlannedPool
from .decisions import PlanWarning
from .hub_serving import HubServing


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class Serving:
    """A variant's instance types, and the images that run on them.

    Parameters
    ----------
    instance_type : str
        The variant's instance type; with pools the slowest of them, for which everything is
        sized. A type that the table does not know gives a warning.
    instance_pools : sequence of PlannedPool
        All types that the variant may run on, where they are several; by default
        ``instance_type`` alone.
    images : sequence of str
        Images of the containers, as URI or ``repository:tag``; checked against the types.
    hub : HubServing, optional
        How the model is served, where it is a model of the Hugging Face Hub.
    inference_ami : str, optional
        The inference AMI version, where somebody chose it. By default the version that CUDA 13
        images need, else SageMaker's own.

    Attributes
    ----------
    doubts : tuple of PlanWarning
        What is doubtful about the instance types and the images.

    Raises
    ------
    ConfigurationError
        ``LLE33x`` for images, ``LLE4xx`` for types and inference AMIs, ``LLE807`` for values of
        another kind, ``LLE825`` for CDK's tokens.
    """

    instance_type: str
    instance_pools: Sequence[PlannedPool] = ()
    images: Sequence[str] = ()
    hub: HubServing | None = None
    inference_ami: str | None = None

    def __post_init__(self) -> None:
        for name in ("instance_pools", "images"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        check_known(INSTANCE_TYPE, self.instance_type, "instance_type")
        for index, image in enumerate(self.images):
            IMAGE_URI.check(image, f"images[{index}]")
        _ = self.doubts  # which refuses types and images that do not fit

    @property
    def facts(self) -> InstanceFacts | None:
        """What is known of the instance type."""
        return instance_facts(self.instance_type)

    @property
    def types(self) -> tuple[str, ...]:
        """All types that the variant may run on; first the type that everything is sized for."""
        pools = (pool.instance_type for pool in self.instance_pools)
        return tuple(dict.fromkeys((self.instance_type, *pools)))

    @property
    def burstable_types(self) -> list[str]:
        """The types that do not scale."""
        known = ((name, instance_facts(name)) for name in self.types)
        return [name for name, facts in known if facts and facts.burstable]

    @property
    def _types_of_images(self) -> tuple[str, ...]:
        """The types on which the images run: not those of pools with a model of their own."""
        if not self.instance_pools:
            return (self.instance_type,)
        return tuple(pool.instance_type for pool in self.instance_pools if not pool.own_model)

    @property
    def weight_bytes(self) -> int:
        """Of the weights that an instance loads; 0 where they are not known."""
        containers = self.hub.containers if self.hub else ()
        return max((container.fit.weight_bytes for container in containers), default=0)

    @property
    def workers(self) -> tuple[str, int]:
        """What serves one request at a time on an instance, and how many of them there are."""
        facts = self.facts
        kinds = (
            (
                ("Neuron core", facts.neuron_cores),
                ("accelerator", facts.accelerator_count),
                ("vCPU", facts.vcpus),
            )
            if facts
            else ()
        )
        return next(((kind, count) for kind, count in kinds if count), ("instance", 1))

    @cached_property
    def needed_ami(self) -> str | None:
        """The inference AMI that the images need on their types."""
        asked = needed_inference_ami([(self.images, name) for name in self._types_of_images])
        if asked is None and self.hub is not None:
            return self.hub.container.inference_ami
        return asked

    @cached_property
    def doubts(self) -> tuple[PlanWarning, ...]:
        """What is doubtful about the types and their images."""
        return (
            *self._unknown_types(self.instance_type),
            *self._doubts_about_ami(),
            *self._doubts_about_images(),
            *self._unknown_types(*self.types[1:]),
            *(
                PlanWarning(f"hugging-face-{number}", text)
                for number, text in enumerate(self.hub.warnings if self.hub else ())
            ),
            *self._uncertain_facts(),
        )

    def _unknown_types(self, *names: str) -> Iterator[PlanWarning]:
        for name in names:
            if instance_facts(name) is None:
                first = name == self.instance_type
                yield PlanWarning(
                    "unknown-instance-type" + ("" if first else f"-{name}"),
                    unchecked(name, "its processors, accelerators and storage" if first else "it"),
                )

    def _uncertain_facts(self) -> Iterator[PlanWarning]:
        facts = self.facts
        if facts and facts.note and facts.vcpus and "network card" not in facts.note:
            yield PlanWarning(
                "uncertain-instance-type",
                f"the facts of {self.instance_type} are less certain: {facts.note}",
            )

    def _doubts_about_ami(self) -> Iterator[PlanWarning]:
        ami = self.inference_ami or self.needed_ami
        if ami is not None and not INFERENCE_AMI.holds(ami):
            yield PlanWarning(
                "unknown-inference-ami", f"the inference AMI {ami!r} is not in this version's list"
            )
        elif ami is not None:
            for name in self.types:
                check_ami_runs_on(ami, name, "inference_ami")

    def _doubts_about_images(self) -> Iterator[PlanWarning]:
        ami = self.inference_ami or self.needed_ami
        for index, image in enumerate(self.images):
            texts = [
                text
                for name in self._types_of_images
                for text in check_image_runs_on(image, name, ami, f"images[{index}]")
            ]
            for number, text in enumerate(dict.fromkeys(texts)):
                yield PlanWarning(f"image-{index}-{number}", text)
