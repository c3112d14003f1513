"""Lists come by AWS's default page sizes: whoever reads one answer only has only the first."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from local_sagemaker import deploy_template, pages

ROLE = "arn:aws:iam::123456789012:role/r"


@pytest.mark.parametrize("place", sorted(pages.most_items()))
def test_a_page_is_of_the_documented_size_and_its_token_leads_on(place):
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListStackResources.html

    and the page of each operation, `MaxResults` or `NextToken`.
    """
    names = pages._paginators(place[0])[place[1]]
    most, items, read = pages.most_items()[place], [{"n": n} for n in range(205)], []
    request = {}
    while True:
        answer = pages.page(*place, request, {names["result_key"]: items})
        assert len(answer[names["result_key"]]) <= most
        read += answer[names["result_key"]]
        if names["output_token"] not in answer:
            break
        request = {names["input_token"]: answer[names["output_token"]]}
    assert read == items
    with pytest.raises(pages.ServiceError, match="NextToken"):
        pages.page(*place, {names["input_token"]: "²"}, {names["result_key"]: items})


def test_every_paged_list_of_our_own_services_has_its_size():
    from local_sagemaker.serving import _SERVICES

    paged = {
        (service.name, operation)
        for service in _SERVICES
        for operation in service.operations.keys() & pages._paginators(service.name).keys()
    }
    assert paged == pages.most_items().keys()


def test_a_stack_of_many_resources(aws):
    """DescribeStackResources tells the first hundred, without a token, of the whole stack."""
    topics = {f"T{number:03}": {"Type": "AWS::SNS::Topic"} for number in range(120)}
    deploy_template(aws, {"Resources": topics}, "Many")
    client = aws.client("cloudformation")
    listed = client.list_stack_resources(StackName="Many")
    assert len(listed["StackResourceSummaries"]) == 100
    last = client.list_stack_resources(StackName="Many", NextToken=listed["NextToken"])
    ids = [each["PhysicalResourceId"] for each in last["StackResourceSummaries"]]
    assert (len(ids), "NextToken" in last) == (20, False)
    described = client.describe_stack_resources(PhysicalResourceId=ids[0])
    assert len(described["StackResources"]) == 100
    assert {each["StackName"] for each in described["StackResources"]} == {"Many"}
    assert ids[0] not in {each["PhysicalResourceId"] for each in described["StackResources"]}
    events = client.describe_stack_events(StackName="Many")
    assert (len(events["StackEvents"]), "NextToken" in events) == (100, True)


def test_models_by_tens_or_as_many_as_asked(aws):
    client = aws.client("sagemaker")
    for number in range(12):
        container = {"Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/i:1"}
        client.create_model(
            ModelName=f"m{number}", ExecutionRoleArn=ROLE, PrimaryContainer=container
        )
    assert len(client.list_models()["Models"]) == 10
    assert len(client.list_models(MaxResults=100)["Models"]) == 12
    with pytest.raises(ClientError, match="ValidationException"):
        client.list_models(NextToken="x")
