"""Functions in the partitions: runtime, architecture, and the names of AWS's own services."""

from __future__ import annotations

import pytest

from low_latency_endpoint import RuntimePrivateLink

NEWEST = {"python3.14", "arm64"}
ELSEWHERE = {"python3.13", "x86_64"}
PARTITIONS = [
    ("us-east-1", NEWEST),
    ("eu-central-1", NEWEST),
    (None, NEWEST),
    ("cn-north-1", ELSEWHERE),
    ("cn-northwest-1", ELSEWHERE),
    ("us-gov-west-1", ELSEWHERE),
]


@pytest.mark.parametrize(("region", "wanted"), PARTITIONS)
def test_a_function_has_what_its_partition_has(new_stack, parts, template_of, region, wanted):
    stack = new_stack(region=region)
    parts.model(stack)
    functions = template_of(stack).of_type("AWS::Lambda::Function")
    assert len(functions) == 3  # of the default group, the interfaces, and the former names
    for function in functions.values():
        assert {function["Runtime"], *function["Architectures"]} == wanted


# The interface endpoint's service has another name in China, the S3 gateway has not: as CDK's own
# tables have them (InterfaceVpcEndpointAwsService, GatewayVpcEndpointAwsService of 2.275.0).
@pytest.mark.parametrize(
    ("region", "prefix"),
    [
        ("us-east-1", "com.amazonaws"),
        ("cn-north-1", "cn.com.amazonaws"),
        ("cn-northwest-1", "cn.com.amazonaws"),
        ("us-gov-west-1", "com.amazonaws"),
    ],
)
def test_the_services_are_called_as_they_are_there(new_stack, parts, template_of, region, prefix):
    stack = new_stack(region=region)
    model = parts.model(stack)
    RuntimePrivateLink(stack, "Link", network=model.network)
    endpoints = template_of(stack).of_type("AWS::EC2::VPCEndpoint").values()
    names = {each["VpcEndpointType"]: each["ServiceName"] for each in endpoints}
    assert names == {
        "Interface": f"{prefix}.{region}.sagemaker.runtime",
        "Gateway": {"Fn::Join": ["", ["com.amazonaws.", {"Ref": "AWS::Region"}, ".s3"]]},
    }
