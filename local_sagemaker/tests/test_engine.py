"""The CloudFormation engine: order, update, replacement, rollback, outputs, exports, nested stacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from signed_requests import refusal
from stacks_under_test import resource_of
from waiting import until

from local_sagemaker import DeploymentFailed, LocalAws, delete_stack, deploy_template

PARAMETER = "AWS::SSM::Parameter"


def parameter(value: Any, **more: Any) -> dict[str, Any]:
    properties = {"Type": "String", "Value": value, **more.pop("properties", {})}
    return {"Type": PARAMETER, "Properties": properties, **more}


def topic(**properties: Any) -> dict[str, Any]:
    return resource_of("AWS::SNS::Topic", **properties)


def bad_endpoint_config() -> dict[str, Any]:
    """A resource that is refused by its service, not by the engine."""
    variant = {"VariantName": "v", "ModelName": "no-such-model", "InstanceType": "ml.c7i.large"}
    return resource_of(
        "AWS::SageMaker::EndpointConfig",
        ProductionVariants=[{**variant, "InitialInstanceCount": 1}],
    )


def read(aws: LocalAws, name: str) -> str:
    return aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]


def completed(stack: Any, status: str) -> list[str]:
    return [e["LogicalResourceId"] for e in stack.events if e["ResourceStatus"] == status]


def test_creates_in_the_order_of_references_and_depends_on(stack):
    deployed = stack.of(
        Third=parameter({"Fn::Sub": "after ${Second}"}),
        Second=parameter({"Ref": "First"}),
        Fourth=parameter("x", DependsOn="Third"),
        First=topic(),
    )
    order = completed(deployed, "CREATE_COMPLETE")
    assert order == ["First", "Second", "Third", "Fourth", stack.name]


def test_deletes_in_reverse_order(aws, stack):
    deployed = stack.of(A=topic(), B=parameter({"Ref": "A"}))
    stack.delete()
    events = aws.client("cloudformation").describe_stack_events(StackName=deployed.id)
    ended = [(e["LogicalResourceId"], e["ResourceStatus"]) for e in events["StackEvents"]]
    gone = [name for name, status in reversed(ended) if status == "DELETE_COMPLETE"]
    assert gone == ["B", "A", stack.name]


def test_a_failed_create_leaves_nothing(aws, stack):
    bad = {**bad_endpoint_config(), "DependsOn": "Good"}
    failed = stack.of(Good=topic(TopicName="left-over"), Bad=bad, expect_failure=True)
    assert failed.status == "ROLLBACK_COMPLETE"
    assert 'Could not find model "arn:aws:sagemaker' in failed.failure_reason
    assert "Bad" in failed.failure_reason
    assert failed.resources == {}
    assert "left-over" not in str(aws.client("sns").list_topics()["Topics"])


def test_a_failed_update_leaves_every_described_setting_as_it_was(aws, stack):
    good = {
        "Topic": topic(DisplayName="before"),
        "Kept": parameter("before", properties={"Description": "as it was"}),
        "Removed": parameter("still here"),
    }
    outputs = {"Value": {"Value": {"Fn::GetAtt": ["Kept", "Value"]}}}
    first = stack.template({"Resources": good, "Outputs": outputs})
    bad = {
        "Topic": topic(DisplayName="after"),
        "Kept": parameter("after"),
        "New": parameter("new"),
        "Bad": {**bad_endpoint_config(), "DependsOn": ["Topic", "Kept", "New"]},
    }
    failed = stack.template({"Resources": bad, "Outputs": outputs}, expect_failure=True)
    assert failed.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "no-such-model" in failed.failure_reason
    assert failed.resources == first.resources
    assert failed.outputs == {"Value": "before"}
    assert read(aws, first.resources["Kept"]) == "before"
    kept = [{"Key": "Name", "Values": [first.resources["Kept"]]}]
    (found,) = aws.client("ssm").describe_parameters(ParameterFilters=kept)["Parameters"]
    assert found["Description"] == "as it was"
    attributes = aws.client("sns").get_topic_attributes(TopicArn=first.resources["Topic"])
    assert attributes["Attributes"]["DisplayName"] == "before"
    names = [p["Name"] for p in aws.client("ssm").describe_parameters()["Parameters"]]
    assert not any(name.startswith(f"{stack.name}-New") for name in names)


def queue(name: str, **more: Any) -> dict[str, Any]:
    return {**resource_of("AWS::SQS::Queue", QueueName=name), **more}


@pytest.mark.parametrize(
    ("policy", "option", "stays"),
    [
        ("Delete", False, False),
        ("Retain", False, True),
        ("Retain", True, False),
        ("RetainExceptOnCreate", False, False),
    ],
)
@pytest.mark.parametrize("operation", ["create", "update", "change set"])
def test_what_a_rollback_leaves_of_a_new_resource(aws, stack, policy, option, stays, operation):
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_UpdateStack.html"""
    cloudformation, sqs = aws.client("cloudformation"), aws.client("sqs")
    it = queue(f"{stack.name}-queue", DeletionPolicy=policy)
    resources = {"Former": topic(), "It": it, "Bad": {**bad_endpoint_config(), "DependsOn": "It"}}
    request = {"StackName": stack.name, "TemplateBody": json.dumps({"Resources": resources})}
    if operation != "create":
        stack.of(Former=topic())
    if operation == "change set":
        changes = cloudformation.create_change_set(**request, ChangeSetName="it")["Id"]
        cloudformation.execute_change_set(ChangeSetName=changes, RetainExceptOnCreate=option)
    else:
        getattr(cloudformation, f"{operation}_stack")(**request, RetainExceptOnCreate=option)
    ended = until(
        lambda: cloudformation.describe_stacks(StackName=stack.name)["Stacks"][0]["StackStatus"],
        lambda status: not status.endswith("IN_PROGRESS"),
    )
    assert ended.endswith("ROLLBACK_COMPLETE")
    left = sqs.list_queues(QueueNamePrefix=stack.name).get("QueueUrls", [])
    assert len(left) == stays
    again = stack.of(Former=topic(), It=it, expect_failure=True)
    assert ("already exists" in (again.failure_reason or "")) == stays
    for url in sqs.list_queues(QueueNamePrefix=stack.name).get("QueueUrls", []):
        sqs.delete_queue(QueueUrl=url)


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_what_a_rollback_leaves_of_a_replacement(aws, stack, policy):
    """Seen in an account: https://github.com/go-to-k/cdkd/pull/2634; AWS's pages do not say."""
    old, new = (queue(f"{stack.name}-{n}", UpdateReplacePolicy=policy) for n in range(2))
    first = stack.of(Q=old)
    bad = {**bad_endpoint_config(), "DependsOn": "Q"}
    assert stack.of(Q=new, Bad=bad, expect_failure=True).resources == first.resources
    sqs = aws.client("sqs")
    left = set(sqs.list_queues(QueueNamePrefix=stack.name)["QueueUrls"]) - {first.resources["Q"]}
    assert len(left) == (policy == "Retain")
    for url in left:
        sqs.delete_queue(QueueUrl=url)


def test_a_failed_update_forgets_the_policies_that_it_brought(stack):
    stack.of(P=parameter("1"))
    kept = parameter("1", DeletionPolicy="Retain")
    stack.of(P=kept, Bad=bad_endpoint_config(), expect_failure=True)
    assert "P" in completed(stack.of(Other=topic()), "DELETE_COMPLETE")


def test_a_replacement_rolled_back_keeps_the_old_resource(aws, stack):
    after = parameter({"Ref": "T"})
    first = stack.of(T=topic(TopicName="replace-1"), P=after)
    bad = {**bad_endpoint_config(), "DependsOn": "P"}
    failed = stack.of(T=topic(TopicName="replace-2"), P=after, Bad=bad, expect_failure=True)
    assert failed.resources == first.resources
    assert read(aws, first.resources["P"]) == first.resources["T"]
    topics = str(aws.client("sns").list_topics()["Topics"])
    assert ":replace-1'" in topics
    assert ":replace-2'" not in topics


def test_replacement_makes_the_new_first_and_cleans_up_last(aws, stack):
    first, second = (
        stack.of(T=topic(TopicName=name), P=parameter({"Ref": "T"})) for name in ("one", "two")
    )
    assert second.resources["T"].endswith(":two")
    assert second.resources["P"] == first.resources["P"]
    assert read(aws, second.resources["P"]) == second.resources["T"]
    history = [(e["LogicalResourceId"], e["ResourceStatus"]) for e in second.events]
    history = history[history.index((stack.name, "UPDATE_IN_PROGRESS")) :]
    assert history.index(("T", "UPDATE_COMPLETE")) < history.index(("P", "UPDATE_COMPLETE"))
    assert history.index(("P", "UPDATE_COMPLETE")) < history.index(("T", "DELETE_IN_PROGRESS"))
    assert first.resources["T"] not in str(aws.client("sns").list_topics()["Topics"])


def test_a_fixed_name_cannot_be_replaced(stack):
    def model(image: str) -> dict[str, Any]:
        role = "arn:aws:iam::123456789012:role/r"
        properties = {"ExecutionRoleArn": role, "PrimaryContainer": {"Image": image}}
        return resource_of("AWS::SageMaker::Model", ModelName="fixed", **properties)

    stack.of(M=model("one"))
    failed = stack.of(M=model("two"), expect_failure=True)
    assert failed.status == "UPDATE_ROLLBACK_COMPLETE"
    assert (
        "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
        "Rename fixed and update the stack again."
    ) in failed.failure_reason


def test_no_change_is_no_update(aws, stack):
    first, second = stack.of(P=parameter("same")), stack.of(P=parameter("same"))
    assert len(second.events) == len(first.events)
    update = aws.client("cloudformation").update_stack
    told = refusal(update, StackName=stack.name, UsePreviousTemplate=True)
    assert told == ("ValidationError", "No updates are to be performed.")


@pytest.mark.parametrize(
    ("attributes", "counts"),
    [
        # See `has_other_changes`: of these AWS's pages say nothing.
        ({"DeletionPolicy": "Retain"}, False),
        ({"UpdateReplacePolicy": "Retain"}, False),
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ResourceTargetDefinition.html
        ({"DeletionPolicy": "Retain", "Metadata": {"a": 1}}, True),
        # https://github.com/ministackorg/ministack/pull/1646
        ({"DependsOn": "Q"}, False),
    ],
)
def test_which_attributes_alone_are_an_update(aws, stack, attributes, counts):
    cloudformation = aws.client("cloudformation")
    stack.of(P=topic(), Q=topic())
    changed = {"Resources": {"P": {**topic(), **attributes}, "Q": topic()}}
    request = {"StackName": stack.name, "TemplateBody": json.dumps(changed)}
    changes = cloudformation.create_change_set(**request, ChangeSetName="it")["Id"]
    status = cloudformation.describe_change_set(ChangeSetName=changes)["Status"]
    assert (status == "CREATE_COMPLETE") == counts
    if not counts:
        told = refusal(cloudformation.update_stack, **request)
        assert told == ("ValidationError", "No updates are to be performed.")
    # They count with the next change.
    stack.template(changed | {"Outputs": {"O": {"Value": "1"}}})
    retained = "DELETE_SKIPPED" in {e["ResourceStatus"] for e in stack.of(Q=topic()).events}
    assert retained == ("DeletionPolicy" in attributes)


def test_an_update_touches_only_what_changed(stack):
    stack.of(A=parameter("1"), B=parameter("1"))
    second = stack.of(A=parameter("2"), B=parameter("1"))
    assert completed(second, "UPDATE_COMPLETE") == ["A", stack.name]


def test_a_removed_resource_is_deleted_and_a_retained_one_is_not(aws, stack):
    kept = parameter("1", DeletionPolicy="Retain")
    first = stack.of(Stays=parameter("1"), Goes=parameter("1"), Kept=kept)
    assert set(stack.of(Stays=parameter("1")).resources) == {"Stays"}
    assert read(aws, first.resources["Kept"]) == "1"
    assert refusal(read, aws=aws, name=first.resources["Goes"])[0] == "ParameterNotFound"
    aws.client("ssm").delete_parameter(Name=first.resources["Kept"])


def test_a_changed_type_is_refused(stack):
    stack.of(X=parameter("1"))
    failed = stack.of(X=topic(), expect_failure=True)
    assert "Update of resource type is not permitted" in failed.failure_reason
    assert "[X]" in failed.failure_reason
    assert failed.status == "UPDATE_ROLLBACK_COMPLETE"


def test_parameters_conditions_mappings_and_outputs(stack):
    template = {
        "Parameters": {
            "Size": {"Type": "Number", "Default": 2},
            "List": {"Type": "CommaDelimitedList", "Default": "a,b"},
        },
        "Mappings": {"Map": {"us-east-1": {"Name": "virginia"}}},
        "Conditions": {"Big": {"Fn::Equals": [{"Ref": "Size"}, "5"]}},
        "Resources": {
            "Small": parameter({"Fn::FindInMap": ["Map", {"Ref": "AWS::Region"}, "Name"]}),
            "OnlyBig": parameter("big", Condition="Big"),
        },
        "Outputs": {
            "Joined": {"Value": {"Fn::Join": ["+", {"Ref": "List"}]}},
            "Second": {"Value": {"Fn::Select": [1, {"Fn::Split": ["/", "a/b/c"]}]}},
            "Chosen": {"Value": {"Fn::If": ["Big", "big", "small"]}},
            "Named": {"Value": {"Fn::GetAtt": ["Small", "Value"]}},
            "Hidden": {"Condition": "Big", "Value": {"Ref": "OnlyBig"}},
            "Zone": {"Value": {"Fn::Select": [1, {"Fn::GetAZs": ""}]}},
            "Block": {"Value": {"Fn::Select": [1, {"Fn::Cidr": ["10.0.0.0/16", 2, 8]}]}},
        },
    }
    small = stack.template(template)
    assert set(small.resources) == {"Small"}
    assert small.outputs == {
        "Joined": "a+b",
        "Second": "b",
        "Chosen": "small",
        "Named": "virginia",
        "Zone": "us-east-1b",
        "Block": "10.0.1.0/24",
    }
    big = stack.template(template, parameters={"Size": "5"})
    assert set(big.resources) == {"Small", "OnlyBig"}
    assert big.outputs["Chosen"] == "big"


def test_get_azs_gives_the_zones_of_its_own_region():
    template = {
        "Resources": {"P": parameter({"Fn::Join": [",", {"Fn::GetAZs": ""}]})},
        "Outputs": {"Zones": {"Value": {"Fn::GetAtt": ["P", "Value"]}}},
    }
    with LocalAws.in_process(region="eu-west-1") as ireland:
        deployed = deploy_template(ireland, template, "Zones")
        delete_stack(ireland, "Zones")
    assert deployed.outputs["Zones"] == "eu-west-1a,eu-west-1b,eu-west-1c"


def test_an_ssm_typed_parameter_keeps_its_name_over_updates(aws, stack):
    ssm = aws.client("ssm")
    ssm.put_parameter(Name="/test/version", Value="21", Type="String")
    version = {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/test/version"}
    template = {
        "Parameters": {"Version": version},
        "Resources": {"P": parameter({"Ref": "Version"})},
    }
    first = stack.template(template)
    assert read(aws, first.resources["P"]) == "21"
    ssm.put_parameter(Name="/test/version", Value="22", Type="String", Overwrite=True)
    cloudformation = aws.client("cloudformation")
    previous = [{"ParameterKey": "Version", "UsePreviousValue": True}]
    cloudformation.update_stack(StackName=stack.name, UsePreviousTemplate=True, Parameters=previous)
    cloudformation.get_waiter("stack_update_complete").wait(
        StackName=stack.name, WaiterConfig={"Delay": 1}
    )
    assert read(aws, first.resources["P"]) == "22"
    described = cloudformation.describe_stacks(StackName=stack.name)["Stacks"][0]["Parameters"]
    assert described == [
        {"ParameterKey": "Version", "ParameterValue": "/test/version", "ResolvedValue": "22"}
    ]
    ssm.delete_parameter(Name="/test/version")


def test_an_export_in_use_cannot_be_changed_or_deleted(aws, stack):
    def producer(value: str) -> dict[str, Any]:
        output = {"Value": value, "Export": {"Name": "shared"}}
        return {"Resources": {"P": parameter("x")}, "Outputs": {"Shared": output}}

    stack.template(producer("one"))
    user = f"{stack.name}User"
    template = {"Resources": {"P": parameter({"Fn::ImportValue": "shared"})}}
    assert read(aws, deploy_template(aws, template, user).resources["P"]) == "one"
    changed = stack.template(producer("two"), expect_failure=True)
    assert changed.status == "UPDATE_ROLLBACK_COMPLETE"
    assert changed.outputs == {"Shared": "one"}
    with pytest.raises(DeploymentFailed, match=f"as it is in use by {user}"):
        stack.delete()
    delete_stack(aws, user)
    assert stack.template(producer("two")).outputs == {"Shared": "two"}


def test_importing_what_nobody_exports_fails(stack):
    reason = stack.refusal(PARAMETER, {"Type": "String", "Value": {"Fn::ImportValue": "nobody"}})
    assert "No export named nobody found." in reason


def test_reading_a_deleted_stack_creates_nothing(aws, stack):
    deployed = stack.of(P=parameter("x"))
    stack.delete()
    cloudformation = aws.client("cloudformation")
    (found,) = cloudformation.describe_stacks(StackName=deployed.id)["Stacks"]
    assert found["StackStatus"] == "DELETE_COMPLETE"
    resources = cloudformation.describe_stack_resources(StackName=deployed.id)["StackResources"]
    assert resources == []
    assert refusal(read, aws=aws, name=deployed.resources["P"])[0] == "ParameterNotFound"
    assert "does not exist" in refusal(cloudformation.describe_stacks, StackName=stack.name)[1]


def test_stack_tags_reach_the_resources(aws, stack):
    for team in ("one", "two"):
        deployed = stack.template({"Resources": {"T": topic()}}, tags={"team": team})
        tags = aws.client("sns").list_tags_for_resource(ResourceArn=deployed.resources["T"])["Tags"]
        assert tags == [{"Key": "team", "Value": team}]


def test_yaml_with_short_forms(aws, stack):
    body = """
Resources:
  Topic:
    Type: AWS::SNS::Topic
  Parameter:
    Type: AWS::SSM::Parameter
    Properties:
      Type: String
      Value: !Sub "${Topic.TopicName}@${AWS::Region}"
Outputs:
  Name:
    Value: !GetAtt Topic.TopicName
  Value:
    Value: !GetAtt Parameter.Value
"""
    cloudformation = aws.client("cloudformation")
    cloudformation.create_stack(StackName=stack.name, TemplateBody=body)
    created = until(
        lambda: cloudformation.describe_stacks(StackName=stack.name)["Stacks"][0],
        lambda found: found["StackStatus"] == "CREATE_COMPLETE",
    )
    outputs = {output["OutputKey"]: output["OutputValue"] for output in created["Outputs"]}
    assert outputs["Value"] == f"{outputs['Name']}@us-east-1"


def test_an_iam_resource_needs_the_acknowledgement(aws, stack, role):
    create = aws.client("cloudformation").create_stack
    told = refusal(
        create, StackName=stack.name, TemplateBody=json.dumps({"Resources": {"R": role}})
    )
    assert told[0] == "InsufficientCapabilitiesException"


# --- references between stacks --------------------------------------------------------------------


@pytest.fixture
def giving(aws) -> Iterator[str]:
    """The ARN that the stack `Giving` gives to others."""
    template = {"Resources": {"Topic": topic()}, "Outputs": {"Arn": {"Value": {"Ref": "Topic"}}}}
    yield deploy_template(aws, template, "Giving").outputs["Arn"]
    delete_stack(aws, "Giving")


def taking(**more: Any) -> dict[str, Any]:
    output = {"StackName": "Giving", "OutputName": "Arn", **more}
    return parameter({"Fn::Join": ["", ["topic ", {"Fn::GetStackOutput": output}]]})


@pytest.mark.parametrize("more", [{}, {"Region": "us-east-1"}], ids=["own", "named"])
def test_a_weak_reference_reads_another_stacks_output_and_does_not_hold_it(
    aws, stack, giving, more
):
    assert read(aws, stack.of(It=taking(**more)).resources["It"]) == f"topic {giving}"
    delete_stack(aws, "Giving")  # an export in use could not be deleted


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"OutputName": "Nope"}, "stack Giving has no output Nope"),
        ({"StackName": "Nobody"}, "stack Nobody has no output Arn, or does not exist"),
        ({"Region": "eu-west-1"}, "stack Giving has no output Arn"),
        ({"RoleArn": "arn:aws:iam::1:role/r"}, "Fn::GetStackOutput with RoleArn is not emulated"),
    ],
)
@pytest.mark.usefixtures("giving")
def test_a_weak_reference_to_nothing_fails_the_stack_and_says_so(stack, more, reason):
    assert reason in str(stack.of(It=taking(**more), expect_failure=True).failure_reason)


NESTED = "AWS::CloudFormation::Stack"


@pytest.fixture
def url(aws):
    """Publish a nested template; gives a function that makes the URL of a variant."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="templates")

    def publish(value: Any, key: str) -> str:
        template = {
            "Parameters": {"Given": {"Type": "String"}},
            "Resources": {"P": resource_of("AWS::SSM::Parameter", Type="String", Value=value)},
            "Outputs": {"Value": {"Value": {"Fn::GetAtt": ["P", "Value"]}}},
        }
        s3.put_object(Bucket="templates", Key=key, Body=json.dumps(template).encode())
        return f"https://s3.us-east-1.amazonaws.com/templates/{key}"

    yield publish
    for entry in s3.list_objects_v2(Bucket="templates").get("Contents", []):
        s3.delete_object(Bucket="templates", Key=entry["Key"])
    s3.delete_bucket(Bucket="templates")


def test_nested_stack(aws, stack, url):
    first = url({"Fn::Sub": "one ${Given}"}, "one.json")
    wanted = ("Outputs.Value",)
    made = stack.deploy(NESTED, {"TemplateURL": first, "Parameters": {"Given": "a"}}, wanted)
    assert made.attributes == {"Outputs.Value": "one a"}
    changed = stack.deploy(NESTED, {"TemplateURL": first, "Parameters": {"Given": "b"}}, wanted)
    assert changed.ref == made.ref
    assert changed.attributes == {"Outputs.Value": "one b"}
    stack.delete()
    found = aws.client("cloudformation").describe_stacks(StackName=made.ref)["Stacks"][0]
    assert found["StackStatus"] == "DELETE_COMPLETE"


def test_a_failing_nested_stack_fails_its_parent_with_the_reason(aws, stack, url):
    broken = url({"Fn::ImportValue": "nobody"}, "broken.json")
    reason = stack.refusal(NESTED, {"TemplateURL": broken, "Parameters": {"Given": "a"}})
    assert "No export named nobody found" in reason
    found = aws.client("cloudformation").list_stacks()["StackSummaries"]
    nested = [
        each["StackStatus"] for each in found if each["StackName"].startswith(f"{stack.name}-It")
    ]
    assert nested == ["DELETE_COMPLETE"]


def test_cdk_metadata_is_accepted(stack):
    made = stack.deploy("AWS::CDK::Metadata", {"Analytics": "v2:deflate64:x"})
    assert stack.deploy("AWS::CDK::Metadata", {"Analytics": "changed"}).ref == made.ref
