"""Settings of a model from SageMaker JumpStart, pinned in a lock file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from ..hugging_face.lock_file import LOCK_NAME, pinned_jumpstart_model
from ..plan import limits
from ..plan.pinned_jumpstart import PinnedJumpStartModel
from .breach import Finding
from .container_checks import environment_checks
from .fields import Limited, TextOrNumber
from .hugging_face import LockPath
from .model_base import SettingsModel, mapping_of, optional


class JumpStartSettings(SettingsModel):
    """A model of SageMaker JumpStart: pinned in a lock file, read from AWS's own bucket."""

    model: str = Field(
        examples=["meta-textgeneration-llama-3-1-8b-instruct"], description="Its ID in JumpStart."
    )
    lock: LockPath = Field(
        default=LOCK_NAME,  # a path, once it is validated
        validate_default=True,
        examples=[LOCK_NAME],
        description="The lock file that low-latency pin --jumpstart wrote, relative to this file. "
        f"Default: {LOCK_NAME}.",
    )
    accept_eula: bool = optional(
        "Accept the model's end-user license agreement, which you have read. Default: false, "
        "which refuses models that ask for it.",
        example=True,
        default=False,
    )
    environment: dict[Annotated[str, Limited(limits.ENVIRONMENT_KEY)], TextOrNumber] = Field(
        default_factory=dict,
        examples=[{"OPTION_MAX_MODEL_LEN": 8192}],
        description="Environment variables beside JumpStart's; they win over them.",
    )

    @property  # not kept: a copy with another value would keep it too
    def pinned(self) -> PinnedJumpStartModel:
        """The model as the lock file pins it.

        Raises
        ------
        ConfigurationError
            LLE343 to LLE345.
        """
        return pinned_jumpstart_model(self.lock, self.model)

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """The environment keeps its limits."""
        yield from environment_checks(mapping_of(given, "environment"))
