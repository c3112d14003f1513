"""All steps of a run, and its clean-up, in the local AWS."""

from __future__ import annotations

import pytest

from local_sagemaker import LocalAws, deploy_template
from tools.acceptance.app import TAG
from tools.acceptance.claims import CLAIMS
from tools.acceptance.clean_up import clean_up, remaining
from tools.acceptance.hub_model import HubModel
from tools.acceptance.steps import STEPS, Pace, Run
from tools.acceptance.world import World

pytestmark = pytest.mark.realtime

PACE = Pace(traffic=3, after_update=8, longest_for_page=20)
SHOWN = {
    *("create", "warm-up", "verify", "subnets-by-zone-id", "alarms-have-data", "update", "pages"),
    *("crash-fails", "alarm-fails", "two-endpoints", "hub-staged", "repin", "former-files"),
    *("renamed-served", "new-name", "former-names", "removed", "shared-role", "delete"),
    *("nothing-left",),
}
"""What the local AWS must show, whatever else it comes to show."""
REFUTED = {"fleet-series-at-create", "rollback-ends"}
"""Where AWS's documentation leaves it open, the local AWS does what is less convenient."""
NOT_SHOWN = {"private-dns", "zonal-names", "tls", "same-zone", "endpoint-policy"}
"""What it cannot show: names lead nowhere there."""


@pytest.mark.timeout(900)
def test_the_local_aws_shows_the_claims_that_it_can(
    world: World, model: HubModel, aws: LocalAws
) -> None:
    run = Run(world, model, "0a1b2c3d", PACE)
    try:
        for step in STEPS:
            run.do(step)
    finally:
        left = clean_up(world, run.suffix)
    told = {claim.id: claim.holds(run.seen[claim.step]) for claim in CLAIMS}
    assert {claim for claim, holds in told.items() if holds is False} == REFUTED
    assert {claim for claim in SHOWN if not told[claim]} == set()
    assert {claim for claim in NOT_SHOWN if told[claim] is not None} == set()
    for zone in run.seen["deploy"]["probes"].values():
        assert zone["names"]["zonal"] == {"unavailable": "not available here"}
    assert left == []
    assert aws.leftovers() == []


def test_the_clean_up_finds_by_tag_what_the_stacks_have_left(world: World, aws: LocalAws) -> None:
    suffix = "00c0ffee"
    tag = [{"Key": TAG, "Value": suffix}]
    s3, logs, sqs, ec2 = (aws.client(name) for name in ("s3", "logs", "sqs", "ec2"))
    s3.create_bucket(Bucket="lost")
    s3.put_bucket_tagging(Bucket="lost", Tagging={"TagSet": tag})
    s3.put_object(Bucket="lost", Key="a", Body=b"a")
    s3.create_bucket(Bucket=f"llee-accept-{suffix}-captured-1")
    s3.create_bucket(Bucket="of-somebody-else")
    logs.create_log_group(logGroupName=f"/aws/sagemaker/Endpoints/llee-accept-{suffix}")
    logs.create_log_group(logGroupName="/of/somebody-else")
    sqs.create_queue(QueueName="lost", tags={TAG: suffix})
    vpc, subnet, interface = (
        {"TagSpecifications": [{"ResourceType": kind, "Tags": tag}]}
        for kind in ("vpc", "subnet", "network-interface")
    )
    vpc_id = ec2.create_vpc(CidrBlock="10.9.0.0/16", **vpc)["Vpc"]["VpcId"]
    made = ec2.create_subnet(VpcId=vpc_id, CidrBlock="10.9.0.0/24", **subnet)["Subnet"]
    ec2.create_network_interface(SubnetId=made["SubnetId"], **interface)
    topic = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
    deploy_template(aws, topic, f"llee-accept-{suffix}", tags={TAG: suffix})
    assert len(remaining(world, suffix)) == 8
    assert remaining(world, "0badcafe") == []
    assert clean_up(world, suffix) == []
    assert aws.leftovers() == ["logs: /of/somebody-else", "s3: of-somebody-else"]
    s3.delete_bucket(Bucket="of-somebody-else")
    logs.delete_log_group(logGroupName="/of/somebody-else")
