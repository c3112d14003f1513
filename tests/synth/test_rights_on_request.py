"""Rights that the model's role gets only when a feature needs them."""

from __future__ import annotations

import json

import pytest
from aws_cdk import aws_kms as kms

from low_latency_endpoint import (
    ClientZones,
    Container,
    ContainerImage,
    DataCapture,
    EndpointConfiguration,
    InstanceType,
    Model,
    ProductionVariant,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.variant import CoreDump

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.fixture
def actions(new_stack, template_of):
    """Actions of the model's policy, for a configuration's keyword arguments."""

    def build(core_dump=None, **options):
        stack = new_stack()
        network = ZoneAlignedNetwork(
            stack, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2")
        )
        model = Model(
            stack, "Model", network=network,
            containers=[Container(image=ContainerImage.from_uri("registry.example.com/x:1"))],
        )
        options = {
            name: make(stack) if callable(make) else make for name, make in options.items()
        }
        EndpointConfiguration(
            stack, "Configuration",
            variants=[ProductionVariant(name="a", model=model, core_dump=core_dump,
                                        instance_type=InstanceType("ml.m5.xlarge"))],
            **options,
        )
        resources = template_of(stack)["Resources"].values()
        found = {}
        for each in resources:
            if each["Type"] == "AWS::IAM::Policy":
                for statement in each["Properties"]["PolicyDocument"]["Statement"]:
                    names = statement["Action"]
                    for action in [names] if isinstance(names, str) else names:
                        found[action] = statement
        return found

    return build


def test_nothing_may_be_written_by_default(actions):
    assert not [action for action in actions() if action.startswith(("s3:Put", "kms:"))]


def test_data_capture_may_write_to_its_destination_only(actions):
    statement = actions(data_capture=DataCapture(destination="s3://captured/sentiment"))[
        "s3:PutObject"
    ]
    assert json.dumps(statement["Resource"]).count("s3:::captured/sentiment/*") == 1


def test_core_dumps_may_be_written_to_their_bucket(actions):
    statement = actions(core_dump=CoreDump("s3://dumps"))["s3:PutObject"]
    assert "s3:::dumps/*" in json.dumps(statement["Resource"])


def test_the_volume_key_may_be_used_for_the_instances_only(actions):
    found = actions(encryption_key=lambda stack: kms.Key.from_key_arn(stack, "Key", KEY))
    assert found["kms:CreateGrant"]["Condition"] == {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    assert "Condition" not in found["kms:DescribeKey"]
    assert all(found[action]["Resource"] == KEY for action in found if action.startswith("kms:"))
