"""What becomes of endpoints that are renamed, moved or retired: deployed, and as plan says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml

from local_sagemaker import DeploymentFailed, LocalAws
from low_latency_endpoint import (
    ClientZones,
    EndpointOptions,
    LowLatencyEndpoint,
    LowLatencyEndpointStack,
)
from low_latency_endpoint.change.comparison import review
from low_latency_endpoint.change.effects import Effect
from low_latency_endpoint.settings import load_settings
from tests.deploy.small_stacks import ACCOUNT, REGION, REGISTRY, container, deploy_at_once, stack_in


def deployed(aws: LocalAws, app: cdk.App) -> Any:
    made = app.synth().stacks[0]
    return deploy_at_once(aws, Path(app.outdir), "Serving", made.template_file)


class Versions:
    """Settings files of one stack, deployed one after the other and held against each other."""

    def __init__(self, aws: LocalAws, folder: Path) -> None:
        self.aws, self.folder, self.settings = aws, folder, []

    def deploy(self, key: str, name: str) -> Any:
        path = self.folder / f"{len(self.settings)}.yaml"
        path.write_text(
            yaml.safe_dump(
                {
                    "stack_name": "Serving",
                    "region": REGION,
                    "account": ACCOUNT,
                    "client_zones": {"ids": ["use1-az1", "use1-az2"]},
                    "endpoints": {
                        key: {
                            "endpoint_name": name,
                            "containers": [{"image": {"uri": f"{REGISTRY}/server:1"}}],
                            "instance_type": "ml.m5.xlarge",
                            "latency": {"p99": "200ms"},
                            "throughput": {"peak_tps": 100, "tps_per_instance": 50},
                        }
                    },
                }
            ),
            "utf-8",
        )
        self.settings.append(load_settings(path))
        app = cdk.App(outdir=str(self.folder / f"out-{len(self.settings)}"))
        LowLatencyEndpointStack.from_settings(app, self.settings[-1])
        return deployed(self.aws, app)

    @property
    def said(self) -> Any:
        """What plan says of the last change."""
        return review(*self.settings[-2:])

    def endpoints(self) -> list[str]:
        found = self.aws.client("sagemaker").list_endpoints()["Endpoints"]
        return sorted(each["EndpointName"] for each in found)


@pytest.fixture
def versions(clean_aws: LocalAws, tmp_path: Path) -> Versions:
    return Versions(clean_aws, tmp_path)


def test_a_scaled_endpoint_that_is_renamed_is_replaced(versions):
    versions.deploy("alpha", "ranking")
    versions.deploy("alpha", "ranking-v2")
    assert versions.endpoints() == ["ranking-v2"]
    (policy,) = versions.aws.client("application-autoscaling").describe_scaling_policies(
        ServiceNamespace="sagemaker"
    )["ScalingPolicies"]
    assert policy["ResourceId"] == "endpoint/ranking-v2/variant/primary"
    assert policy["PolicyName"] == "Invocations-ranking-v2-primary"
    assert versions.said.effect is Effect.REPLACED


def test_a_moved_key_with_the_same_name_is_refused_and_what_serves_stays(versions):
    versions.deploy("alpha", "ranking")
    with pytest.raises(DeploymentFailed, match="already existing endpoint"):
        versions.deploy("beta", "ranking")
    assert versions.endpoints() == ["ranking"]
    assert versions.said.effect is Effect.REFUSED


def test_a_moved_key_with_another_name_makes_another_endpoint(versions):
    versions.deploy("alpha", "ranking")
    versions.deploy("beta", "ranking-v2")
    assert versions.endpoints() == ["ranking-v2"]
    assert versions.said.effect is Effect.DELETED


def test_the_network_of_an_endpoint_that_is_retired_goes_with_it(clean_aws, tmp_path):
    """And synthesis warns of it as long as both are there."""

    def stack_of(*names: str) -> tuple[cdk.App, list[str]]:
        stack = stack_in(tmp_path / "-".join(names), "Serving")
        shared: dict[str, Any] = {"client_zones": ClientZones.of_ids("use1-az1", "use1-az2")}
        for name in names:
            made = LowLatencyEndpoint(
                stack,
                name,
                **shared,
                instance_type="ml.m5.xlarge",
                containers=[container("server:1")],
                endpoint=EndpointOptions(endpoint_name=name),
            )
            shared = {"network": made.network, "private_link": made.private_link}
        warned = [
            str(entry.data)
            for construct in stack.node.find_all()
            for entry in construct.node.metadata
            if entry.type == "aws:cdk:warning" and "networkOfAnEndpoint" in str(entry.data)
        ]
        return stack.node.root, warned

    both, warned = stack_of("first", "second")
    assert ["Serving/first" in text for text in warned] == [True]
    before = deployed(clean_aws, both).resources
    alone, warned = stack_of("second")
    assert not warned
    after = deployed(clean_aws, alone).resources
    vpcs = [each["VpcId"] for each in clean_aws.client("ec2").describe_vpcs()["Vpcs"]]
    (old,) = (each for name, each in before.items() if name.startswith("firstNetworkVpc"))
    (new,) = (each for name, each in after.items() if name.startswith("secondNetworkVpc"))
    assert old not in vpcs
    assert new in vpcs
