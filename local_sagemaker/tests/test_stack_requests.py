"""CloudFormation's requests: sizes, what is masked, statuses, and inputs that nothing reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from signed_requests import ask, refusal, signed
from stacks_under_test import resource_of
from waiting import until

from local_sagemaker import cloudformation
from local_sagemaker.cloudformation.api import CLOUDFORMATION
from local_sagemaker.cloudformation.stacks import Stack, store
from local_sagemaker.cloudformation.template import Submission
from local_sagemaker.protocols import service_model

SOURCES = Path(cloudformation.__file__).parent
STATUSES = yaml.safe_load((SOURCES / "statuses.yaml").read_text())
INPUTS = yaml.safe_load((SOURCES / "inputs.yaml").read_text())
TOPIC = resource_of("AWS::SNS::Topic")
PARAMETER = resource_of("AWS::SSM::Parameter", Type="String", Value={"Ref": "Secret"})


def many(count: int, item: Any) -> dict[str, Any]:
    return {f"N{number}": item for number in range(count)}


def test_a_template_in_s3_has_a_quota_of_its_own(aws, stack):
    s3, told = aws.client("s3"), aws.client("cloudformation")
    s3.create_bucket(Bucket="large")
    whole = {"Resources": {"T": TOPIC}, "Metadata": {"a": "x" * 60_000}}
    s3.put_object(Bucket="large", Key="fits", Body=json.dumps(whole).encode())
    s3.put_object(Bucket="large", Key="not", Body=b"x" * 1_000_001)
    url = "https://s3.us-east-1.amazonaws.com/large"
    assert told.validate_template(TemplateURL=f"{url}/fits")["Parameters"] == []
    assert "1000000 bytes" in refusal(told.validate_template, TemplateURL=f"{url}/not")[1]


@pytest.mark.parametrize("name", ["a" * 129, "a_b", "1a", "a b", "é"])
def test_a_stack_has_a_name_of_its_pattern(aws, name):
    """API reference, CreateStack, StackName."""
    body = json.dumps({"Resources": {"T": TOPIC}})
    told = refusal(aws.client("cloudformation").create_stack, StackName=name, TemplateBody=body)
    assert told[0] == "ValidationError"
    assert "stackName" in told[1]


def test_a_parameter_with_no_echo_is_masked(aws, stack):
    """Template sections, "Parameters", NoEcho: in any call that describes the stack."""
    template = {
        "Parameters": {"Secret": {"Type": "String", "NoEcho": True}, "Open": {"Type": "String"}},
        "Resources": {"P": PARAMETER},
    }
    stack.template(template, parameters={"Secret": "hush", "Open": "o"})
    told = aws.client("cloudformation")
    changed = {
        "ChangeSetName": "changes",
        "TemplateBody": json.dumps(template),
        "Parameters": [
            {"ParameterKey": "Secret", "ParameterValue": "hushed"},
            {"ParameterKey": "Open", "UsePreviousValue": True},
        ],
    }
    told.create_change_set(StackName=stack.name, **changed)
    for described in (
        told.describe_stacks(StackName=stack.name)["Stacks"][0],
        told.describe_change_set(StackName=stack.name, ChangeSetName="changes"),
    ):
        values = {row["ParameterKey"]: row["ParameterValue"] for row in described["Parameters"]}
        assert values == {"Secret": "****", "Open": "o"}
        assert "hush" not in str(described)
    (secret, _) = told.get_template_summary(StackName=stack.name)["Parameters"]
    assert secret["NoEcho"] is True


REFUSED_WHILE = {  # API reference; the words' sources are in `statuses.yaml`
    "DeleteStack": {
        *(f"UPDATE_{end}" for end in ("IN_PROGRESS", "COMPLETE_CLEANUP_IN_PROGRESS")),
        *(f"UPDATE_ROLLBACK_{end}" for end in ("IN_PROGRESS", "COMPLETE_CLEANUP_IN_PROGRESS")),
        *("IMPORT_IN_PROGRESS", "IMPORT_ROLLBACK_IN_PROGRESS"),
    },
    "CancelUpdateStack": {*STATUSES["statuses"]} - {"UPDATE_IN_PROGRESS"},
    "ContinueUpdateRollback": {*STATUSES["statuses"]} - {"UPDATE_ROLLBACK_FAILED"},
    "RollbackStack": {*STATUSES["statuses"]} - {"CREATE_FAILED", "UPDATE_FAILED"},
    "UpdateStack": {
        status
        for status in STATUSES["statuses"]
        if not status.endswith("_COMPLETE") and status != "UPDATE_FAILED"
    }
    | {"ROLLBACK_COMPLETE"},
}
REFUSED_WHILE["CreateChangeSet"] = REFUSED_WHILE["UpdateStack"]


def test_the_statuses_are_those_of_the_model():
    known = service_model("cloudformation").shape_for("StackStatus").enum
    assert {*STATUSES["statuses"], "DELETE_COMPLETE"} == set(known)


@pytest.mark.parametrize("operation", REFUSED_WHILE)
def test_a_status_refuses_an_operation_in_its_words(aws, operation):
    stacks = store(aws.account, aws.region)
    call = getattr(aws.client("cloudformation"), _snake(operation))
    refused = set()
    for status in STATUSES["statuses"]:
        it = Stack("Still", "arn:aws:cloudformation:::stack/Still/1", status, Submission("{}"))
        stacks.alive["Still"] = it
        more = {"ChangeSetName": "c"} if operation == "CreateChangeSet" else {}
        words = STATUSES["words"][operation].format(id=it.id, status=status)
        if status in REFUSED_WHILE[operation]:
            assert refusal(call, StackName="Still", **more) == ("ValidationError", words)
            refused.add(status)
        else:
            it.check_status(operation)
        del stacks.alive["Still"]
    assert refused == REFUSED_WHILE[operation]


def _snake(operation: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in operation).lstrip("_")


def test_a_stack_that_is_being_created_can_be_deleted(aws, stack):
    told = aws.client("cloudformation")
    body = json.dumps({"Resources": many(40, TOPIC)})
    stack_id = told.create_stack(StackName=stack.name, TemplateBody=body)["StackId"]
    told.delete_stack(StackName=stack.name)
    told.delete_stack(StackName=stack.name)
    until(
        lambda: told.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"],
        lambda status: status == "DELETE_COMPLETE",
    )


def test_resources_are_retained_after_a_failed_deletion_only(aws, stack):
    """API reference, DeleteStack, RetainResources: "For stacks in the DELETE_FAILED state"."""
    stack.of(T=TOPIC)
    delete = aws.client("cloudformation").delete_stack
    assert "only when" in refusal(delete, StackName=stack.name, RetainResources=["T"])[1]


@pytest.mark.parametrize("operation", sorted(CLOUDFORMATION.operations))
def test_no_input_is_dropped_silently(operation):
    shape = service_model("cloudformation").operation_model(operation).input_shape
    judged = {*INPUTS["refused"].get(operation, ()), *INPUTS["ignored"].get(operation, {})}
    assert judged <= set(shape.members)
    source = "".join(path.read_text() for path in SOURCES.glob("*.py"))
    unread = [name for name in set(shape.members) - judged if f'"{name}"' not in source]
    assert unread == []


def test_an_input_that_is_not_emulated_is_refused_by_name(aws, stack):
    body = json.dumps({"Resources": {"T": TOPIC}})
    create = aws.client("cloudformation").create_stack
    told = refusal(create, StackName=stack.name, TemplateBody=body, TimeoutInMinutes=5)
    assert told == (
        "ValidationError",
        "CreateStack with TimeoutInMinutes is not emulated by the local AWS",
    )
    standard = {"Mode": "STANDARD"}  # as the CDK CLI states it
    create(StackName=stack.name, TemplateBody=body, DeploymentConfig=standard)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_request_is_an_internal_failure(aws, data):
    operation = data.draw(st.sampled_from(sorted(CLOUDFORMATION.operations)))
    names = sorted(service_model("cloudformation").operation_model(operation).input_shape.members)
    value = st.one_of(st.text(max_size=5), st.sampled_from(["true", "-1", "{}", "Resources: {}"]))
    drawn = data.draw(st.dictionaries(st.sampled_from(names), value, max_size=4))
    body = "&".join([f"Action={operation}", *(f"{key}={item}" for key, item in drawn.items())])
    headers = signed(aws.exports()["AWS_ACCESS_KEY_ID"], "cloudformation")
    headers |= {"Content-Type": "application/x-www-form-urlencoded"}
    answer = ask(aws.port, "POST", "/", headers, body.encode("utf-8", "surrogatepass"))
    assert answer.status in (200, 400, 404), (body, answer.body)
