"""What a settings file's plan warns of, beyond the numbers."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import SettingsError
from low_latency_endpoint.settings import explain_variants, load_settings
from tests.pinned_models import QWEN, written_lock

VALUE = "x7Kq2mP9vL4sT8wZ1nB6"
SETTINGS = """
client_zones: {{ids: [use1-az1, use1-az2]}}
{further}
endpoints:
  chat:
    containers:
      - image: {image}
        environment: {environment}
    instance_type: ml.m5.xlarge
    latency: {{p99: 200ms}}
"""


@pytest.fixture
def write(tmp_path):
    def build(environment="{}", further="", image="{ecr: {repository: chat}}"):
        path = tmp_path / "endpoint.yaml"
        path.write_text(
            SETTINGS.format(environment=environment, further=further, image=image), encoding="utf-8"
        )
        return path

    return build


def ids(path):
    return [
        warning.id
        for warning in explain_variants(load_settings(str(path)), "chat")["chat"].warnings
    ]


def test_a_secret_in_an_environment(write):
    path = write(f"{{HF_TOKEN: {VALUE}, MAX_TOKENS: 512}}")
    assert [each for each in ids(path) if "secret" in each] == ["secret-in-environment:HF_TOKEN"]


def test_a_secret_in_a_build_argument_stays_in_the_image(write, tmp_path):
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "Dockerfile").write_text("FROM scratch\n", encoding="utf-8")
    path = write(image=f"{{asset: image, build_args: {{HF_TOKEN: {VALUE}}}}}")
    assert "secret-in-environment:HF_TOKEN" in ids(path)


@pytest.mark.parametrize("variant", [None, "variants", "shadow"])
def test_a_secret_in_the_environment_of_a_model_of_the_hub(tmp_path, variant):
    written_lock(tmp_path, QWEN)
    plain = {"model": QWEN.model}
    secret = {**plain, "environment": {"MY_PASSWORD": VALUE, "MAX_TOKENS": 512}}
    further = {
        "variants": {"variants": {"b": {"weight": 1, "hugging_face": secret}}},
        "shadow": {"shadow": {"name": "b", "share": 0.5, "hugging_face": secret}},
    }
    endpoint = {
        "hugging_face": plain if variant else secret,
        "instance_type": "ml.g6.2xlarge",
        "latency": {"ttft_p95": "1s"},
        "tokens": {"input": 512, "output": 128},
        **further.get(variant, {}),
    }
    zones = {"ids": ["use1-az1", "use1-az2"]}
    path = tmp_path / "endpoint.yaml"
    path.write_text(yaml.safe_dump({"client_zones": zones, "endpoints": {"chat": endpoint}}))
    assert [each for each in ids(path) if "secret" in each] == ["secret-in-environment:MY_PASSWORD"]


def test_alarms_without_a_topic(write):
    assert "alarms-notify-nobody" in ids(write())
    topic = "alarm_topic_arn: arn:aws:sns:us-east-1:123456789012:on-call"
    assert "alarms-notify-nobody" not in ids(write(further=topic))


@pytest.mark.parametrize("options", [[], ["--json"], ["--markdown"], ["--verbose"]])
def test_the_plan_says_so_and_never_the_value(write, options):
    path = write(f"{{HF_TOKEN: {VALUE}}}")
    done = CliRunner().invoke(app, ["plan", "--settings", str(path), *options])
    assert done.exit_code == 0, done.output
    assert "HF_TOKEN looks like a secret" in " ".join(unescape(done.output).split())
    assert VALUE not in done.output
    if options == ["--json"]:
        warnings = json.loads(done.output)["endpoints"]["chat"]["warnings"]
        assert any("Secrets Manager" in warning for warning in warnings)


def test_the_example_for_regulated_organisations_leaves_nothing_of_that():
    path = Path(__file__).parents[2] / "examples" / "regulated.yaml"
    assert not explain_variants(load_settings(str(path)), "sentiment")["sentiment"].warnings


def test_more_buckets_than_the_s3_endpoints_policy_names_are_refused(write):
    for count, refused in ((50, False), (51, True)):
        buckets = ", ".join(f"bucket-{number}" for number in range(count))
        path = write(further=f"network: {{s3_buckets: [{buckets}]}}")
        if refused:
            with pytest.raises(SettingsError, match="LLE340"):
                load_settings(str(path))
        else:
            assert len(load_settings(str(path)).network.s3_buckets) == count
