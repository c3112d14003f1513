"""Change sets, as the CDK CLI uses them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from signed_requests import refusal
from stacks_under_test import ENDPOINT, endpoint, hosting, resource_of, variant
from waiting import until


class Changes:
    """Creates, reads and executes change sets of one stack."""

    def __init__(self, aws: Any, stack: str) -> None:
        self.client = aws.client("cloudformation")
        self.stack = stack

    def create(self, resources: dict[str, Any], kind: str, name: str = "changes") -> dict[str, Any]:
        self.client.create_change_set(
            StackName=self.stack,
            ChangeSetName=name,
            ChangeSetType=kind,
            TemplateBody=json.dumps({"Resources": resources}),
            Capabilities=["CAPABILITY_IAM"],
        )
        return self.client.describe_change_set(StackName=self.stack, ChangeSetName=name)

    def execute(self, name: str = "changes") -> str:
        self.client.execute_change_set(StackName=self.stack, ChangeSetName=name)

        def status() -> str:
            return self.client.describe_stacks(StackName=self.stack)["Stacks"][0]["StackStatus"]

        return until(status, lambda found: not found.endswith("_IN_PROGRESS"))


@pytest.fixture
def changes(aws, stack) -> Changes:
    """Change sets of the test's stack."""
    return Changes(aws, stack.name)


def parameter(value: Any, **properties: Any) -> dict[str, Any]:
    return resource_of("AWS::SSM::Parameter", Type="String", Value=value, **properties)


def topic(**properties: Any) -> dict[str, Any]:
    return resource_of("AWS::SNS::Topic", **properties)


def by_id(described: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = [change["ResourceChange"] for change in described["Changes"]]
    return {change["LogicalResourceId"]: change for change in found}


def test_a_new_stack_by_change_set(changes):
    described = changes.create({"P": parameter("1")}, "CREATE")
    assert (described["Status"], described["ExecutionStatus"]) == ("CREATE_COMPLETE", "AVAILABLE")
    assert by_id(described)["P"]["Action"] == "Add"
    (found,) = changes.client.describe_stacks(StackName=changes.stack)["Stacks"]
    assert found["StackStatus"] == "REVIEW_IN_PROGRESS"
    assert changes.execute() == "CREATE_COMPLETE"
    gone = {"StackName": changes.stack, "ChangeSetName": "changes"}
    assert refusal(changes.client.describe_change_set, **gone)[0] == "ChangeSetNotFound"


def test_replacement_is_foretold_also_where_it_comes_from_a_reference(changes, role):
    resources = {
        **hosting(role, [variant(1)]),
        "Endpoint": resource_of(ENDPOINT, **endpoint()),
        "Untouched": topic(),
        "Gone": topic(),
    }
    changes.create(resources, "CREATE")
    assert changes.execute() == "CREATE_COMPLETE"
    resources["Model"]["Properties"]["PrimaryContainer"] = {"Image": "two"}
    del resources["Gone"]
    resources["New"] = topic()
    found = by_id(changes.create(resources, "UPDATE"))
    assert {key: change["Action"] for key, change in found.items()} == {
        "Model": "Modify",
        "Config": "Modify",
        "Endpoint": "Modify",
        "Gone": "Remove",
        "New": "Add",
    }
    replaced = {key: found[key]["Replacement"] for key in ("Model", "Config", "Endpoint")}
    assert replaced == {"Model": "True", "Config": "True", "Endpoint": "False"}
    (detail,) = found["Model"]["Details"]
    assert detail["Target"]["Name"] == "PrimaryContainer"
    assert detail["Target"]["RequiresRecreation"] == "Always"
    (detail,) = found["Endpoint"]["Details"]
    assert detail["CausingEntity"] == "Config.EndpointConfigName"
    assert changes.execute() == "UPDATE_COMPLETE"


def test_no_change_is_a_failed_change_set_in_the_words_the_cli_looks_for(changes):
    changes.create({"P": parameter("1")}, "CREATE")
    changes.execute()
    described = changes.create({"P": parameter("1")}, "UPDATE")
    assert (described["Status"], described["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
    assert described["StatusReason"].startswith("The submitted information didn't contain changes.")
    gone = {"StackName": changes.stack, "ChangeSetName": "changes"}
    assert refusal(changes.client.execute_change_set, **gone)[0] == "InvalidChangeSetStatus"


def test_two_stacks_may_have_change_sets_of_one_name(aws, stack, changes):
    other = Changes(aws, f"{stack.name}Other")
    changes.create({"A": parameter("1")}, "CREATE")
    other.create({"B": parameter("1")}, "CREATE")
    described = changes.client.describe_change_set(StackName=changes.stack, ChangeSetName="changes")
    assert set(by_id(described)) == {"A"}
    assert other.execute() == "CREATE_COMPLETE"
    assert changes.execute() == "CREATE_COMPLETE"
    other.client.delete_stack(StackName=other.stack)


def test_deleting_an_absent_change_set_is_no_error(changes):
    changes.create({"P": parameter("1")}, "CREATE")
    changes.client.delete_change_set(StackName=changes.stack, ChangeSetName="absent")
    changes.client.delete_change_set(StackName=changes.stack, ChangeSetName="changes")
    assert changes.client.list_change_sets(StackName=changes.stack)["Summaries"] == []


def test_a_template_by_url_may_be_path_style_on_an_address(aws, stack):
    s3, cloudformation = aws.client("s3"), aws.client("cloudformation")
    s3.create_bucket(Bucket="by-url")
    body = json.dumps({"Resources": {"P": parameter("1")}})
    s3.put_object(Bucket="by-url", Key="a/b.json", Body=body.encode())
    for url in (
        f"http://127.0.0.1:{aws.port}/by-url/a/b.json",
        "https://by-url.s3.us-east-1.amazonaws.com/a/b.json",
    ):
        assert cloudformation.get_template_summary(TemplateURL=url)["Parameters"] == []
    s3.delete_object(Bucket="by-url", Key="a/b.json")
    s3.delete_bucket(Bucket="by-url")
