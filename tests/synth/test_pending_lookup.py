"""While the CLI has still to look a VPC up, nobody judges what stands for it.

The CLI runs the app, looks up what is missing, and runs it again. Where it could not look
something up (no credentials, say), the second run has CDK's stand-ins too, and the reason.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import aws_cdk as cdk
import pytest

from low_latency_endpoint import LowLatencyEndpointStack
from tests.cdk_features import needs_cdk

from .judges import cdk_rules

pytestmark = needs_cdk("Validations")

ROOT = Path(__file__).resolve().parents[2]
ACCOUNT = "123456789012"
OWN, OTHER, THIRD = (f"vpc-0123456789abcdef{last}" for last in range(3))

PLACE = f"""
stack_name: FraudScore
account: "{ACCOUNT}"
region: us-east-1
network:
  vpc_id: {OWN}
"""
BY_NAME = """
client_zones: {names: [us-east-1a, us-east-1b]}
"""
BY_ID = """  subnets: {use1-az1: subnet-0123456789abcdef0, use1-az2: subnet-0123456789abcdef1}
client_zones: {ids: [use1-az1, use1-az2]}
"""
ENDPOINT = """
alarm_topic_arn: arn:aws:sns:us-east-1:123456789012:on-call
endpoints:
  fraud-score:
    containers:
      - image: {ecr: {repository: team/fraud-score, tag: 1.4.2}}
        data: {s3: s3://my-bucket/fraud-score/model.tar.gz}
    instance_type: ml.m5.xlarge
    latency: {p99: 80ms}
    throughput: {peak_tps: 400, tps_per_instance: 100}
    warm_up: {payload: {data: {amount: 12.5}}}
"""
LINKS = {
    "by ID": BY_ID + "private_link: {private_dns: false}",
    "by name, private DNS": BY_NAME + "private_link: {private_dns: true, sagemaker_api: true}",
    "by name, other VPCs": BY_NAME
    + f"private_link: {{private_dns: false, hosted_zone_vpc_ids: [{OTHER}, {THIRD}]}}",
}
SETTINGS = {name: f"{PLACE}{network}\n{ENDPOINT}" for name, network in LINKS.items()}


def judgements(
    settings: str, folder: Path, context: dict[str, object]
) -> tuple[list[str], list[str]]:
    """What every validation says of the app, and what the CLI is asked to look up."""
    path = folder / "endpoint.yaml"
    path.write_text(settings, encoding="utf-8")
    flags = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    # As the CLI sets it, which prints the report itself.
    reported_by_the_cli = {"@aws-cdk/core:failSynthOnValidationErrors": False}
    out = Path(tempfile.mkdtemp(dir=folder))
    app = cdk.App(context=flags | reported_by_the_cli | context, outdir=str(out))
    # Tests are without CDK's own rules, but for those that ask.
    cdk.Validations.of(app).add_plugins(cdk_rules())
    LowLatencyEndpointStack.from_settings(app, path)
    app.synth()
    missing = json.loads((out / "manifest.json").read_text(encoding="utf-8")).get("missing", [])
    report = out / "validation-report.json"
    reports = json.loads(report.read_text("utf-8"))["pluginReports"] if report.exists() else []
    said = [
        f"{violation['severity']} {violation['description']}"
        for plugin in reports
        for violation in plugin["violations"]
    ]
    return said, [lookup["key"] for lookup in missing]


def answer(key: str) -> dict[str, object]:
    """What the CLI writes into cdk.context.json for a VPC with the subnets of these settings."""
    vpc_id = key.partition("filter.vpc-id=")[2].partition(":")[0]
    subnets = [
        {
            "subnetId": f"subnet-0123456789abcdef{at}",
            "cidr": f"10.0.{at}.0/24",
            "availabilityZone": zone,
            "routeTableId": "rtb-0123456789abcdef0",
        }
        for at, zone in enumerate(("us-east-1a", "us-east-1b"))
    ]
    return {
        "vpcId": vpc_id,
        "vpcCidrBlock": "10.0.0.0/16",
        "ownerAccountId": ACCOUNT,
        "availabilityZones": [],
        "subnetGroups": [{"name": "Private", "type": "Private", "subnets": subnets}],
    }


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_nothing_is_said_of_a_stand_in(settings: str, tmp_path: Path) -> None:
    first, missing = judgements(settings, tmp_path, {})
    assert missing
    complete, still_missing = judgements(settings, tmp_path, {key: answer(key) for key in missing})
    assert first == complete
    assert not still_missing


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_lookup_that_failed_is_the_one_error(settings: str, tmp_path: Path) -> None:
    first, missing = judgements(settings, tmp_path, {})
    reason = f"Need to perform AWS calls for account {ACCOUNT}"
    failed: dict[str, object] = {key: {"$providerError": reason} for key in missing}
    said, still_missing = judgements(settings, tmp_path, failed)
    [error] = [line for line in said if line not in first]
    assert error.startswith("error LLE160")
    assert reason in error
    assert f"where:   {OWN}" in error
    assert "npx cdk synth" in error
    assert "commit cdk.context.json" in error
    assert sorted(still_missing) == sorted(missing)
