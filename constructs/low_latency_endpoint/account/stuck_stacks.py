"""What brings a stack back that CloudFormation cannot update as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors.shell_words import shell_word
from ..facts.failure_reasons import read_failure
from .calls import Account
from .sessions import Unreadable
from .stacks import ENDPOINT_TYPE, failed_resources

#: The page with each step, and what of it was not seen on AWS.
ROLL_BACK_PAGE = "docs/how-to/roll-back.md"
#: What an update of an endpoint ends with that SageMaker refuses, as far as is known.
MAY_BE_STUCK = (
    "The deployment would fail; the stack's rollback updates the endpoint, too, and may be refused "
    f"(UPDATE_ROLLBACK_FAILED): {ROLL_BACK_PAGE}"
)
_AGAIN = (
    "If all of it shall go, delete the stack: a deletion that failed can be repeated. Its events "
    "report the failure."
)


def is_stuck(status: str) -> bool:
    """Whether CloudFormation waits for somebody before it updates such a stack."""
    return status.endswith("_FAILED")


def way_out(account: Account, stack: Mapping[str, Any]) -> str:
    """What to do about a stack in a failed state, with commands that are whole."""
    if stack["StackStatus"] == "UPDATE_ROLLBACK_FAILED":
        return _continued(account, stack["StackName"])
    return _AGAIN


def _continued(account: Account, name: str) -> str:
    """How a rollback that failed is continued, by what did not go back.

    CloudFormation skips only what is UPDATE_FAILED
    (https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ContinueUpdateRollback.html).
    The CDK CLI asks it to (https://docs.aws.amazon.com/cdk/v2/guide/ref-cli-cmd-rollback.html).
    """
    command = f"npx cdk rollback {shell_word(name)}"
    page = f"See {ROLL_BACK_PAGE}."
    try:
        failed = failed_resources(account, name)
    except Unreadable as refusal:
        return f"What did not go back could not be read ({refusal}). {page}"
    kinds = [read_failure(found.reason).kind for found in failed.values()]
    if any(kind.name == "updating" for kind in kinds if kind):
        return f"Wait until the endpoint is InService, then `{command}`. {page}"
    others = [resource for resource, found in failed.items() if found.type != ENDPOINT_TYPE]
    if others or not failed:
        return f"Mend why {' and '.join(others) or 'it'} did not go back, then `{command}`. {page}"
    orphans = " ".join(f"--orphan {shell_word(resource)}" for resource in failed)
    return (
        f"If the former configuration serves (`low-latency verify {shell_word(name)}`), let CloudFormation "
        f"skip the endpoint: `{command} {orphans}`. {page}"
    )
