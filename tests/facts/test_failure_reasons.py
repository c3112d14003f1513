"""AWS's sentences about failures are read to one kind each, those of the local AWS among them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

from local_sagemaker import sagemaker_api
from local_sagemaker.permissions import service_roles
from local_sagemaker.runtime import containers, endpoints, fleet, service
from low_latency_endpoint.facts.failure_reasons import FAILURE_KINDS, kinds_of, read_failure

_ROLE = "arn:aws:iam::123456789012:role/r"
_MODEL = "s3://bucket/model.tar.gz"
_ROLE_MUST = (
    f'Please ensure that the role "{_ROLE}" exists and that its trust relationship policy allows the '
    'action "sts:AssumeRole" for the service principal "sagemaker.amazonaws.com".'
)
_LIMIT = (
    "The account-level service limit 'ml.g5.xlarge for endpoint usage' is {} Instances, with current "
    "utilization of {} Instances and a request delta of {} Instances. Please contact AWS support to "
    "request an increase for this limit."
)

#: As AWS's pages and users have them; the sources are those of the patterns.
SENTENCES = {
    _LIMIT.format(0, 0, 1): "quota",
    "Failed to set desired instance count to 110. Reason: " + _LIMIT.format(1000, 997, 20): "quota",
    "CapacityError: Unable to provision requested ML compute capacity. Please retry using a "
    "different ML instance type.": "capacity",
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity "
    "error.": "capacity",
    "EC2InsufficientCapacityError: Instance type 'ml.g5.48xlarge' is temporarily unavailable in "
    "supported availability zones [euw1-az1].": "capacity",
    f"Could not assume role {_ROLE}. {_ROLE_MUST}": "role",
    f"SageMaker was unable to assume the role '{_ROLE}'": "role",
    f"The role '{_ROLE}' does not have BatchGetImage permission for the image: 'x:1'.": "image",
    "Please make sure all images included in the model for the production variant v exist, and that "
    "the execution role used to create the model has permissions to access them.": "image",
    f"Could not access model data at {_MODEL}. {_ROLE_MUST} Also ensure that the role has "
    '"s3:GetObject" permissions and that the object is located in eu-west-1.': "data access",
    f'Failed to download model data for container "container_1" from URL: "{_MODEL}". Please ensure '
    "that there is an object located at the URL and that the role passed to CreateModel has "
    "permissions to download the object.": "data access",
    "Failed to download model data for the container. Please ensure that there is enough disk space "
    "on instance and that the model data exists.": "download",
    f'Failed to extract model data archive for container "container_1" from URL "{_MODEL}". Please '
    "ensure that the object located at the URL is a valid tar.gz archive.": "archive",
    f'Failed to extract model data archive from URL "{_MODEL}". The model data archive is too large. '
    "Please reduce the size of the model data archive or move to an instance type with more "
    "memory.": "archive size",
    "CannotStartContainerError. Please ensure the model container for variant AllTraffic starts "
    "correctly when invoked with 'docker run <image> serve'": "start",
    "The primary container for production variant AllTraffic did not pass the ping health check. "
    "Please check CloudWatch logs for this endpoint.": "ping",
    "The customer:primary container,hardware:neuron for production variant AllTraffic did not pass "
    "the ping health check. Please check CloudWatch logs for this endpoint.": "ping",
    "Request to service failed. If failure persists after retry, contact customer support.": "service",
    "Cannot update in-progress endpoint": "updating",
}


@pytest.mark.parametrize(("sentence", "name"), SENTENCES.items(), ids=SENTENCES.values())
def test_a_sentence_has_one_kind(sentence: str, name: str) -> None:
    assert [kind.name for kind in kinds_of(sentence)] == [name]
    # Line breaks and case are no part of the words.
    assert read_failure(sentence.upper().replace(" ", "\n")).kind == read_failure(sentence).kind


def test_what_a_container_wrote_is_no_reason_of_aws() -> None:
    """The local AWS adds it to AWS's sentence."""
    ping = "The primary container for production variant v did not pass the ping health check."
    reason = read_failure(f"{ping} It wrote last: Could not assume role of the feature store.")
    assert reason.kind is not None
    assert reason.kind.name == "ping"


def test_a_sentence_that_nobody_knows_has_no_kind() -> None:
    """What a new sentence shares with a known one is no reason to guess."""
    for sentence in (
        "",
        "The endpoint reached a limit.",
        "The request exceeds the capacity of the volume.",
        "The role is in use.",
        "The alarm name is too long.",
        "Model data capture failed.",
    ):
        reason = read_failure(sentence)
        assert (reason.kind, reason.fix, list(reason.settings(updating=True))) == (None, "", [])


#: What of the local AWS fails with a sentence that callers see.
_LOCAL: tuple[ModuleType, ...] = (
    sagemaker_api,
    service_roles,
    containers,
    endpoints,
    fleet,
    service,
)
_RAISED = ("FleetFailed", "RoleLacks", "ModelDataError", "_Alarmed")
#: Of these the local AWS says itself that they are not AWS's.
_OWN = ("The local AWS cannot judge",)


def _text(node: ast.expr, constants: dict[str, str]) -> str:
    """A text as it stands in the code, with a word for each value; empty for a text made elsewhere."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return constants.get(node.id, "")
    if isinstance(node, ast.BinOp):
        return _text(node.left, constants) + _text(node.right, constants)
    if isinstance(node, ast.JoinedStr):
        parts = (x.value if isinstance(x, ast.Constant) else "thing" for x in node.values)
        return "".join(map(str, parts))
    return ""


def _local_sentences() -> Iterator[str]:
    for module in _LOCAL:
        tree = ast.parse(inspect.getsource(module))
        constants = {name: value for name, value in vars(module).items() if isinstance(value, str)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            if isinstance(node.func, ast.Name) and node.func.id in _RAISED:
                yield _text(node.args[0], constants)


def test_each_sentence_of_the_local_aws_is_read() -> None:
    sentences = [text for text in _local_sentences() if text]
    kinds = {kind.name for text in sentences for kind in kinds_of(text)}
    assert {"capacity", "role", "ping", "image", "data access", "alarm", "room"} <= kinds
    others = [text for text in sentences if not text.startswith(_OWN)]
    assert [text for text in others if len(kinds_of(text)) != 1] == []


def test_each_pattern_has_a_sentence() -> None:
    """A pattern that no sentence has would never be seen to be wrong."""
    known = [*SENTENCES, *_local_sentences()]
    names = {kind.name for sentence in known for kind in kinds_of(sentence)}
    assert {kind.name for kind in FAILURE_KINDS} == names
    for kind in FAILURE_KINDS:
        assert all(pattern.source.startswith("https://") for pattern in kind.patterns)


def test_an_update_of_scarce_instances_may_go_in_batches() -> None:
    def keys(sentence: str, *, updating: bool) -> list[str]:
        return [each.key for each in read_failure(sentence).settings(updating=updating)]

    assert "deployment.rolling" in keys("InsufficientInstanceCapacity", updating=True)
    assert "deployment.rolling" not in keys("InsufficientInstanceCapacity", updating=False)
    assert "deployment.rolling" in keys(_LIMIT.format(8, 8, 8), updating=True)
    assert "deployment.rolling" not in keys(_LIMIT.format(0, 0, 1), updating=True)


def test_the_quota_to_ask_for_is_what_aws_counted() -> None:
    assert "1,017 of" in read_failure(_LIMIT.format("1,000", 997, 20)).fix
    assert "more instances of the type" in read_failure("ResourceLimitExceeded").fix
