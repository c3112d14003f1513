"""How long creating and deleting a stack take."""

from __future__ import annotations

from typing import Any

from ..errors.frozen import dataclass

UNSEEN = "not seen on AWS yet"
"""The mark of what nobody of this project has watched in an account."""

_ROADMAP = "https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/"
_SAGEMAKER_INTERFACES = _ROADMAP + "1327"
_LAMBDA_INTERFACES = (_ROADMAP + "392", "https://github.com/serverless/serverless/issues/5008")


@dataclass(frozen=True)
class StackMinutes:
    """One of the times."""

    what: str  # ``create`` or ``delete``
    minutes: str  # how many, in words: nobody has timed them
    why: str  # what takes so long
    sources: tuple[str, ...] = ()  # public reports; empty where it is this library's estimate

    def __str__(self) -> str:
        verb = {"create": "Creating", "delete": "Deleting"}[self.what]
        said = f" ({', '.join(self.sources)})" if self.sources else ""
        return f"{verb} takes {self.minutes}; {UNSEEN}: {self.why}{said}."

    def to_dict(self) -> dict[str, Any]:
        """The time as JSON-safe data."""
        return {
            "minutes": self.minutes,
            "why": self.why,
            "seen_on_aws": False,
            "sources": list(self.sources),
        }


def stack_minutes(*, functions: bool) -> tuple[StackMinutes, StackMinutes]:
    """How long creating and deleting take."""
    create = StackMinutes(
        "create",
        "about 10 to 20 minutes",
        "an estimate of ours; SageMaker starts the instances, and large images, large models and "
        "scarce types take longer",
    )
    if functions:
        return create, StackMinutes(
            "delete",
            "about 20 to 45 minutes",
            "after the endpoint is gone, AWS keeps the network interfaces of SageMaker and of the "
            "Lambda functions in the subnets, and with them the security group and the subnets; users "
            "report these times for Lambda's",
            (_SAGEMAKER_INTERFACES, *_LAMBDA_INTERFACES),
        )
    return create, StackMinutes(
        "delete",
        "more than 15 minutes",
        "after the endpoint is gone, AWS keeps SageMaker's network interfaces, and with them the "
        "security group and the subnets; users report that CloudFormation gave up waiting after "
        "15 minutes",
        (_SAGEMAKER_INTERFACES,),
    )
