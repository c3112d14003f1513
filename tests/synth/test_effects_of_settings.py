"""What `plan --against` says of each setting is what CloudFormation does with the two templates."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from low_latency_endpoint.options.option import Effect
from low_latency_endpoint.settings import Settings, load_settings, settings_json_schema
from low_latency_endpoint.settings.update.comparison import compare
from tests.depth import sampled
from tests.pinned_models import LLAMA, QWEN, written_lock
from tools.fuzzing.agreement import synthesised, text_of

from .names_and_rights import narrowed, shared_by_an_update
from .stack_changes import effects_of

SHIPPED = Path(__file__).parents[1] / "sentiment.yaml"
BASE = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
GONE = object()  # of a change: the setting is left out

Changes = dict[str, Any]


def below(place: str, **values: Any) -> Changes:
    """Several settings of one group."""
    return {f"{place}.{name}": value for name, value in values.items()}


KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROLE = "arn:aws:iam::123456789012:role/one"
CODE_SIGNING = "arn:aws:lambda:us-east-1:123456789012:code-signing-config:csc-0123456789abcdef0"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf"
LOGIN = "arn:aws:lambda:us-east-1:123456789012:function:%s"
VPCS = [f"vpc-0fedcba987654321{number}" for number in range(2)]
THREE_ZONES = {"client_zones.ids": ["use1-az1", "use1-az2", "use1-az4"]}
BY_NAME = {"client_zones": {"names": ["us-east-1a", "us-east-1b"]}}
SUBNETS = {f"use1-az{number + 1}": f"subnet-0123456789abcdef{number}" for number in range(2)}
EXISTING = below("network", vpc_id="vpc-0123456789abcdef0", subnets=SUBNETS)
OTHERS_LINK = below(
    "private_link",
    interface_endpoint_id="vpce-0123456789abcdef0",
    security_group_id="sg-0123456789abcdef0",
)
ADOPTED = {**EXISTING, **OTHERS_LINK}
ZONE = "private_link.hosted_zone_vpc_ids"
FIRST = ".containers[0]"
IMAGE, DATA = f"{FIRST}.image", f"{FIRST}.data"


def at(name: str, **more: Any) -> dict[str, Any]:
    """A container whose image is anybody's."""
    return {"image": {"uri": f"registry.example.com/{name}:1"}, **more}


URI = {".containers": [at("scorer")]}
BUILT = {".containers": [{"image": {"asset": "container"}}]}
OWN = {".containers": [{"image": {"ecr": {"repository": "team/scorer", "tag": "1"}}}]}
PRIVATE = {**URI, **below(IMAGE, private_registry=True, credentials_function_arn=LOGIN % "login")}
PACKED = {DATA: {"asset": "model.tar.gz"}}
PREFIXED = {DATA: {"s3_prefix": "s3://my-bucket/a/"}}
TWO = {
    "containers": [at("one", hostname="one"), at("two", hostname="two")],
    "inference_mode": "Direct",
}
MANY = [at("scorer", data={"s3": "s3://my-bucket/models/"}, multi_model=True)]
OF_ONE_MODEL = {"text": "one", "target_model": "a.tar.gz"}
OF_MANY = {".containers": MANY, ".warm_up.payload.target_model": "a.tar.gz"}
POOLS = {
    ".instance_pools": [
        {"instance_type": "ml.m7i.12xlarge", "priority": 1, "tps_per_instance": 300},
        {"instance_type": "ml.m5.12xlarge", "priority": 2, "tps_per_instance": 200},
    ]
}
LARGER = "ml.m5.24xlarge"
FIXED = {".scaling": {"enabled": False, "keep_counts": False}}
LOCAL = {".instance_type": "ml.g5.xlarge", **URI}
CONCURRENCY = {".scaling": {"metric": "concurrency", "concurrency_target": 4}}
SCHEDULE = {
    ".scaling.schedule": [{"name": "morning", "cron": "45 7 ? * MON-FRI *", "min": 8, "max": 40}]
}
LAUNCH = {".scaling.schedule": [{"name": "launch", "at": "2030-01-01T00:00:00", "min": 12}]}
DAILY = {".scaling.schedule": [{"name": "daily", "rate": "1 day", "max": 12}]}
PEAKS = {
    ".throughput.peaks": {
        "night": {"tps": 2000, "from": "22:00", "to": "06:00", "time_zone": "Europe/Berlin"}
    }
}
STEPS = {".scaling.steps": {"adds": [{"requests": 8, "add": 2}, {"requests": 16, "add": 4}]}}
CAPTURE = {".data_capture": {"s3": "s3://my-bucket/captured/"}}
DUMP = {".core_dump": {"s3": "s3://my-bucket/dumps/"}}
LANGUAGE = {
    ".latency": {"ttft_p95": "500ms", "itl_p95": "50ms"},
    ".tokens": {"input": 512, "output": 128},
    ".throughput": {"peak_tps": 24, "tps_per_instance": 3, "concurrency_per_instance": 20},
}
OF_VLLM = {f"{IMAGE}.dlc": {"repository": "vllm", "tag": "0.30.0-cpu"}, **LANGUAGE}
LENGTHS = {
    **LANGUAGE,
    ".tokens": {"input": {"p50": 300, "p95": 1800}, "output": {"p50": 100, "p95": 400}},
}
CHALLENGED = {".variants": {"b": {"weight": 1}}}
SHADOWED = {".shadow": {"name": "b"}}
FURTHER = (("variants.b", {"weight": 1}), ("shadow", {"name": "b"}))
CONFIGURED = {
    "startup_health_check_timeout": "6m",
    "model_data_download_timeout": "6m",
    "instance_provision_timeout": "6m",
    "volume_size_gib": 64,
    "capacity_reservation_arn": "arn:aws:sagemaker:us-east-1:123456789012:training-plan/mine",
}
OF_GPUS = {"custom": "al9-ami-sagemaker-inference-gpu-9-1"}
HUB = {
    ".containers": GONE,
    ".hugging_face": {"model": "Qwen/Qwen3-8B"},
    ".instance_type": "ml.g6e.xlarge",
}
GATED = {"model": "meta-llama/Llama-3.1-8B-Instruct", "accept_license": "llama3.1"}
CANARY = {".deployment": {"canary": {"size_percent": 10, "wait": "5m"}}}
LINEAR = {".deployment": {"linear": {"step_percent": 25, "wait": "5m"}}}
AT_ONCE = {".deployment": {"all_at_once": {"wait": "1m"}}}
ROLLING = {".deployment": {"rolling": {"batch_percent": 25, "wait": "5m"}}}
PREFIX = {".routing": {"prefix_aware": {"prefix_length": 1024, "concurrency_threshold": 16}}}
SECOND = {"containers": [at("scorer")], "instance_type": "ml.m5.large", "latency": {"p99": "300ms"}}
PARTS = ("Average", "Maximum", "Minimum")
STATISTICS = (*PARTS, "p50", "p90", "p95", "p99", "p99.9", "p98")
SLOW = {".alarms.slow_requests": {"threshold": "150ms"}}

Row = tuple[Changes, *tuple[Changes, ...]]
#: What a file says before and after, and changes of it, each of which is a case. A path that begins
#: with a dot is the endpoint's. Here: what endpoints share, and what is done to an endpoint itself.
OF_FILE = {"file": "model.tar.gz", "content_type": "text/plain"}
FULL_PAYLOAD = {
    "data": {"inputs": "A"},
    "content_type": "application/json",
    "accept": "text/csv",
    "target_container": "second",
}
SHARED: list[Row] = [
    (
        {},
        {"stack_name": "Other"},
        THREE_ZONES,
        {"client_zones.ids": ["use1-az2", "use1-az1"]},
        {"client_zones.ids": ["use1-az1", "use1-az4"]},
        BY_NAME,
        EXISTING,
        {"network.cidr": "10.1.0.0/16"},
        {"network.subnet_prefix_length": 23},
        {"network.flow_logs": "all"},
        {"network.flow_logs": False},
        {"network.s3_prefix_list": "pl-63a5400a"},
        {"network.narrow_s3": True},
        {"network.s3_buckets": ["another-bucket"]},
        {"private_link.allow_cidrs": ["10.0.0.0/16", "10.2.0.0/16"]},
        {ZONE: VPCS[:1]},
        {"private_link.fips": True},
        {"private_link.private_dns": False},
        {"private_link.bidirectional_streaming": True},
        {"private_link.endpoint_policy": False},
        {"private_link.narrow_policy": False},
        {"private_link.openai": True},
        {"private_link.sagemaker_api": True},
        {"parameters": "/low-latency"},
        {"alarm_topic_arn": "arn:aws:sns:us-east-1:123456789012:on-call"},
        {"safeguards.kms_key_arn": KEY},
        {"safeguards.log_retention_days": 365},
        {"safeguards.function_role_arn": ROLE},
        {"safeguards.flow_log_role_arn": ROLE},
        {
            "safeguards.function_subnet_ids": ["subnet-0123456789abcdef0"],
            "safeguards.function_security_group_ids": ["sg-0123456789abcdef0"],
        },
        {"safeguards.code_signing_config_arn": CODE_SIGNING},
        {"safeguards.wait_for_interfaces": False},
        {"tags.team": "nlp"},
        # What holds where nothing is stated, and what only costs.
        {
            "network.cidr": "10.0.0.0/16",
            "network.flow_logs": "reject",
            "private_link.allow_cidrs": ["10.0.0.0/16"],
            "private_link.private_dns": True,
            "prices": {"interface_endpoint": 0.02},
        },
        {"endpoints.second": SECOND},
        # The key names the resources: the endpoint's own name is taken, as long as both are there.
        {"endpoints": {"mood": BASE["endpoints"]["sentiment"]}},
        {".endpoint_name": "mood"},
        {".endpoint_name": "Sentiment"},
        {".endpoint_name": GONE},
        {".endpoint_name": "mood", ".instance_type": LARGER},
        {".scaling": FIXED[".scaling"], ".volume_size_gib": 64},
    ),
    ({".endpoint_name": GONE}, {"stack_name": "Other"}),
    ({"account": "123456789012"}, {"account": "123456789013"}),
    (THREE_ZONES, {"client_zones.ids": ["use1-az1", "use1-az2"]}),
    (BY_NAME, {"client_zones.names": ["us-east-1a", "us-east-1c"]}),
    (
        EXISTING,
        {"network.vpc_id": "vpc-0123456789abcdef1"},
        {"network.subnets.use1-az2": "subnet-0123456789abcdef3"},
        OTHERS_LINK,
    ),
    (ADOPTED, {"private_link": {}}, {"private_link.security_group_id": "sg-0123456789abcdef1"}),
    (ADOPTED, {"network.owner": "210987654321"}),
    ({"network.subnet_prefix_length": 24, **FIXED}, {"network.subnet_prefix_length": 26}),
    ({"network.flow_logs": False}, {"network.flow_logs": "all"}),
    ({ZONE: VPCS[:1]}, {ZONE: []}, {ZONE: VPCS}),
    ({"private_link.sagemaker_api": True}, {"private_link.sagemaker_api": False}),
    ({"parameters": "/low-latency"}, {"parameters": None}, {"parameters": "/other"}),
    *((base, {"safeguards.kms_key_arn": KEY}) for base in (LOCAL, {**LOCAL, **CAPTURE})),
    ({".kms_key_arn": KEY}, {"safeguards.kms_key_arn": KEY}),
    ({**LOCAL, "safeguards.kms_key_arn": KEY}, {".kms_key_with_local_storage": True}),
    ({"endpoints.second": SECOND}, {"endpoints.second": GONE}),
    # The stack's, for all endpoints.
    (HUB, below(".hugging_face", token_secret_arn=SECRET, hub_endpoint="https://hub.example.com")),
]
#: Of what an endpoint has for itself, by what each change does. Settings of one change are of one
#: row in the tables of effects, and do the same, each of them.
OF_ENDPOINTS: dict[Effect, list[Row]] = {
    Effect.NOTHING: [
        (
            {},
            {".latency.ttft_p95": "400ms"},
            {".throughput.concurrency_per_instance": 24},  # of what is no language model
            {".streaming": True, ".payload_bytes": 8_000_000, ".kms_key_with_local_storage": True},
            {".tokens": LANGUAGE[".tokens"]},
            {".throughput.peak_tps": 1001},  # 7.7 instances, as with 1,000: eight
            {".throughput.rise_tps_per_minute": 11},  # 1.96, as with ten: two
            # What holds where nothing is stated.
            {
                ".instances.min": 2,
                ".routing": "least_outstanding_requests",
                **below(".scaling", keep_counts=True, scale_in_cooldown="5m", instance_start="4m"),
                **below(".alarms", error_rate=0.01, minimum_failures=3, cpu_utilization=85),
                ".alarms.minimum_invocations": 20,
                **below(".alarms", memory_utilization=90, disk_utilization=90),
                **below(".alarms", capacity_at_maximum=True, expect_traffic=False, period="1m"),
                **below(".alarms", evaluation_periods=3, datapoints_to_alarm=2),
                **below(".alarms", quiet_during_deployments=False, model_latency={"p99": "160ms"}),
                **CANARY,
            },
        ),
        (POOLS, {".instance_pools[0].tps_per_instance": 320}),
        (
            LANGUAGE,
            {
                **below(".latency", ttft_p50="400ms", ttft_p90="400ms", ttft_p95="400ms"),
                **below(".latency", ttft_p99="500ms", itl_p50="40ms", itl_p90="40ms"),
                **below(".latency", itl_p95="40ms", itl_p99="50ms"),
                ".alarms.tokens.ttft": {"p95": "450ms"},  # of no known server: no alarm
            },
            {".tokens": {"input": 600, "output": 256, "shared_prefix": 0.5}},
            {".tokens.shared_prefix": 0.5},
        ),
        (OF_VLLM, {".alarms.tokens.server": "vllm"}),  # as the image's name says
        (
            LENGTHS,
            {
                **below(".tokens.input", p50=200, p95=2000),
                **below(".tokens.output", p50=50, p95=500),
            },
        ),
        ({".instances": {"initial": 8, "max": 16}}, {".throughput.peak_tps": 2000}),
        (CHALLENGED, {".variants.b.concurrency_per_instance": 24}),
        (SHADOWED, {".shadow.concurrency_per_instance": 24}),
        (
            {".variants": {"b": {"scaling": {"instance_start": "4m"}, "weight": 1}}},
            {".variants.b.scaling.instance_start": "6m"},
        ),
        (HUB, below(".hugging_face", accept_license="apache-2.0", trust_remote_code=True)),
    ],
    Effect.IN_PLACE: [
        (
            {},
            {f"{DATA}.kms_key_arn": KEY},
            {".latency.p99": "150ms"},
            {".latency.p99": "50ms"},
            {".latency.overhead_share": 0.1},
            {".throughput.rise_tps_per_minute": 12},  # 15 / 7: three instead of two at least
            {".instances.min": 3},
            {".instances.max": 20},
            {".scaling.enabled": False},
            CONCURRENCY,
            {".scaling.invocations_target": 7500},  # 125 a second: eight hold 1,000, as with 130
            below(".scaling", scale_in_cooldown="10m", scale_out_cooldown="2m"),
            {".scaling.instance_start": "6m"},  # 10 x 14.5 / 70: three at least
            SCHEDULE,
            STEPS,
            {".confirm_updates": False},
            {
                **below(".alarms", error_rate=0.02, client_error_rate=0.05, minimum_failures=5),
                **below(".alarms", cpu_utilization=50, memory_utilization=50, disk_utilization=50),
                **below(".alarms", zone_imbalance=1.5, expect_traffic=True, period="5m"),
                ".alarms.minimum_invocations": 50,
                **below(".alarms", evaluation_periods=5, datapoints_to_alarm=5),
            },
            SLOW,
            {".alarms.service_level_objective": 0.99},
            {".alarms.anomalies": {"Invocations": "Sum"}},
            {".alarms.capacity_at_maximum": False},
            {".alarms.quiet_during_deployments": True},
            {".dashboard": False},
            {".warm_up": GONE},
            {".warm_up.requests": 500},
            {
                **below(".warm_up.payload", content_type="text/plain"),
                **below(".warm_up.payload", accept="text/csv", target_container="second"),
                ".warm_up.payload.data.inputs": "Another.",
            },
            {".warm_up.payload": [FULL_PAYLOAD, {"text": "one"}, OF_FILE]},
            {
                **below(".warm_up", concurrency_per_zone=5, last=40, timeout="5m", on_miss="warn"),
                **below(".warm_up", during_deployments=False, metrics=True),
                ".warm_up.reserved_concurrency": 2,
            },
            {".warm_up.keep_warm": {"every": "2m"}},
            {".canary": {}},
            {".tags.team": "nlp"},
        ),
        ({".role_arn": ROLE}, {f"{DATA}.kms_key_arn": KEY}),
        ({f"{DATA}.kms_key_arn": KEY}, {f"{DATA}.kms_key_arn": GONE}),
        (PACKED, {f"{DATA}.kms_key_arn": KEY}),
        (
            OF_VLLM,
            below(".latency", ttft_p95="400ms", itl_p99="90ms"),
            {
                f".alarms.tokens.{kind}.{each}": "350ms"
                for kind in ("ttft", "itl")
                for each in ("p50", "p90", "p95", "p99")
            },
            below(".alarms.tokens", waiting_requests=4, kv_cache_use=0.95, minimum_requests=5),
        ),
        (
            LANGUAGE,
            {".alarms.tokens.server": "sglang"},
            {".throughput.concurrency_per_instance": 24},
            {".throughput.concurrency_per_instance": GONE},
            {".scaling.metric": "invocations"},
        ),
        ({".alarms.tokens.server": "vllm"}, {".alarms.tokens.kv_cache_use": 0.95}),
        ({".throughput.rise_tps_per_minute": GONE}, {".throughput.from_tps": 0}),
        *(
            (
                {f".{place}": {**stated, "scaling": {"scale_out_cooldown": "1m"}}},
                {f".{place}.instances": {"max": 40}},
                below(f".{place}.scaling", scale_in_cooldown="8m", scale_out_cooldown="2m"),
                {f".{place}.scaling": {"enabled": False}},
            )
            for place, stated in FURTHER
        ),
        (
            {".shadow": {"name": "b", "scaling": {"instance_start": "4m"}}},
            {".shadow.scaling.instance_start": "6m"},
        ),
        (
            {".variants": {"b": {"containers": MANY}}},
            {".variants.b.containers[0].data.kms_key_arn": KEY},
        ),
        (CONCURRENCY, {".scaling.concurrency_target": 6}),
        (
            SCHEDULE,
            below(
                ".scaling.schedule[0]",
                name="early",
                cron="30 7 ? * MON-FRI *",
                time_zone="Europe/Berlin",
                min=9,
            ),
            {".scaling.schedule": GONE},
        ),
        (
            PEAKS,
            below(
                ".throughput.peaks.night",
                tps=3000,
                **{"from": "21:00", "to": "07:00"},
                time_zone="Europe/Paris",
            ),
        ),
        (LAUNCH, {".scaling.schedule[0].at": "2030-01-02T03:04:05"}),
        (DAILY, {".scaling.schedule[0].rate": "2 days"}),
        (
            STEPS,
            {
                **below(".scaling.steps", metric="invocations", periods=3, cooldown="2m"),
                **below(".scaling.steps.adds[0]", requests=6, add=3),
            },
            {".scaling.steps": GONE},
        ),
        (
            {".alarms.model_latency": dict.fromkeys(STATISTICS, "160ms")},
            {f".alarms.model_latency.{name}": "150ms" for name in STATISTICS},
        ),
        (
            {".alarms.overhead_latency": dict.fromkeys(PARTS, "40ms")},
            {f".alarms.overhead_latency.{name}": "30ms" for name in PARTS},
        ),
        ({".alarms.service_level_objective": 0.99}, {".alarms.service_level_objective": 0.95}),
        (SLOW, below(".alarms.slow_requests", threshold="160ms", objective=0.95)),
        (
            LOCAL,
            below(".alarms", gpu_utilization=50, gpu_memory_utilization=50, model_error_rate=0.05),
        ),
        (OF_MANY, below(".alarms", cache_miss_rate=0.05, model_loading_wait="1s")),
        (OF_MANY, {".warm_up.payload.target_model": "b.tar.gz"}),
        (
            {".containers": MANY, ".warm_up.payload": [OF_ONE_MODEL]},
            {".warm_up.payload[0].target_model": "b.tar.gz"},
        ),
        (
            {**OF_MANY, ".canary": {"payload": OF_ONE_MODEL}},
            {".canary.payload.target_model": "b.tar.gz"},
        ),
        ({".warm_up.payload": {"text": "one"}}, {".warm_up.payload.text": "two"}),
        ({".warm_up.payload": OF_FILE}, {".warm_up.payload.file": "payload.json"}),
        (
            {".warm_up.keep_warm": {"every": "1m"}},
            below(".warm_up.keep_warm", every="2m", requests_per_zone=2, below_tps=7, window="10m"),
        ),
        (
            {".canary": {"payload": FULL_PAYLOAD}},
            {".canary": GONE},
            below(".canary", longest_connect="5ms", zone_difference="7ms"),
            {
                **below(".canary.payload", content_type="text/plain"),
                **below(".canary.payload", accept="text/plain", target_container="third"),
                ".canary.payload.data.inputs": "Another.",
            },
        ),
        (
            {".canary": {"payload": {"text": "one"}}},
            {".canary.payload.text": "two"},
            {".canary.payload": {"data": {"inputs": "A"}}},
        ),
        ({".canary": {"payload": OF_FILE}}, {".canary.payload.file": "payload.json"}),
    ],
    Effect.DEPLOYMENT: [
        (PEAKS, {".throughput.peaks": GONE}),  # and with it initial instances
        (
            {".warm_up": GONE},  # whose payload would have to name a model
            {f"{FIRST}.multi_model": True, DATA: {"s3": "s3://my-bucket/models/"}},
        ),
        (
            {},
            {IMAGE: {"uri": "registry.example.com/scorer:1"}},
            {f"{IMAGE}.dlc.repository": "pytorch-inference"},
            below(f"{IMAGE}.dlc", tag="2.7.0-cpu-py312-ubuntu22.04", account="763104351885"),
            {f"{DATA}.s3": "s3://my-bucket/other/model.tar.gz"},
            {DATA: {"s3_prefix": "s3://my-bucket/b/"}},
            PACKED,
            below(FIRST, environment={"HF_TASK": "fill-mask"}, model_package="fraud/7"),
            {".throughput.peak_tps": 2000},
            {".throughput.tps_per_instance": 250},
            {".throughput.safety_factor": 0.5},
            {".scaling.invocations_target": 6000},  # 100 a second: ten at first instead of eight
            {".throughput": GONE},
            CHALLENGED,
            SHADOWED,
            {".routing": "random"},
            {".instances.initial": 9},
            {".network_isolation": True},
            {".role_arn": ROLE},
            {".kms_key_arn": KEY},
            {
                **below("", **CONFIGURED, variant_weight=9, metrics={"enhanced": True}),
                ".ssm_access": True,
            },
            DUMP,
            CAPTURE,
        ),
        (
            URI,
            {f"{IMAGE}.uri": "registry.example.com/scorer:2"},
            {f"{IMAGE}.private_registry": True},
        ),
        (PRIVATE, {f"{IMAGE}.credentials_function_arn": LOGIN % "other"}),
        (OWN, below(f"{IMAGE}.ecr", repository="team/other", tag="2")),
        (
            BUILT,
            {f"{IMAGE}.asset": "another"},
            below(IMAGE, file="Other", build_args={"MODEL": "small"}),
        ),
        ({**BUILT, ".instance_type": "ml.unknown.large"}, {f"{IMAGE}.platform": "linux/amd64"}),
        (PREFIXED, {f"{DATA}.accept_eula": True}, {f"{DATA}.s3_prefix": "s3://my-bucket/b/"}),
        ({f"{FIRST}.model_package": "fraud/7"}, {f"{FIRST}.model_package": "fraud/8"}),
        (
            {**below("", **TWO), ".warm_up.payload.target_container": "one"},
            {f"{FIRST}.hostname": "another"},
            {".inference_mode": "Serial"},
        ),
        (OF_MANY, {f"{FIRST}.model_cache": False}),
        (FIXED, {".instance_type": LARGER}, {".variant_name": "blue"}),
        (POOLS, {".instance_pools[0].priority": 3}),
        (OF_VLLM, CHALLENGED, {f"{IMAGE}.dlc.repository": "sglang"}),
        ({".variants": {"b": {"scaling": {"enabled": False}}}, **FIXED}, {".variants": GONE}),
        (
            CHALLENGED,
            {".variant_weight": 9},
            {".throughput.peak_tps": 400},
            {".routing": "random"},
            {".variants.b.weight": 0.5},
        ),
        *(
            (
                {f".{place}": stated},
                below(f".{place}", **CONFIGURED, inference_ami=OF_GPUS, routing="random"),
                {f".{place}.containers": URI[".containers"]},
                {f".{place}.ssm_access": True},
                {f".{place}.tps_per_instance": 150},
                {f".{place}.safety_factor": 0.4},
                {f".{place}.instances": {"initial": 9}},
            )
            for place, stated in FURTHER
        ),
        ({**CHALLENGED, **FIXED}, {".instance_type": LARGER}),
        (
            {".variants": {"b": {"weight": 1, "scaling": {"enabled": False}}}},
            {".variants.b.instance_type": LARGER},
        ),
        ({".variants": {"b": TWO}}, {".variants.b.inference_mode": "Serial"}),
        ({".shadow": {"name": "b", **TWO}}, {".shadow.inference_mode": "Serial"}),
        (SHADOWED, {".shadow.share": 0.5}),
        (
            {**LOCAL, ".instance_type": "ml.g6e.xlarge", **SHADOWED},
            {".shadow.hugging_face": HUB[".hugging_face"]},
        ),
        (PREFIX, below(".routing.prefix_aware", prefix_length=2048, concurrency_threshold=8)),
        (CANARY, {".deployment.rollback_on_alarms": False, f"{FIRST}.environment.HF_TASK": "x"}),
        (
            {".metrics": {"enhanced": False}},
            below(".metrics", enhanced=True, detailed_observability=False, publish_frequency="10s"),
        ),
        (LOCAL, {".inference_ami": OF_GPUS}),
        (DUMP, below(".core_dump", s3="s3://my-bucket/other/", kms_key_arn=KEY)),
        (
            CAPTURE,
            {
                **below(".data_capture", s3="s3://my-bucket/other/", kms_key_arn=KEY),
                **below(".data_capture", capture=["input"], csv_content_types=["text/csv"]),
                **below(".data_capture", json_content_types=["application/json"]),
                ".data_capture.sampling_percentage": 20,
            },
        ),
        (
            HUB,
            {".hugging_face": GATED},
            {".hugging_face.lock": "another/models.lock.yaml"},
            {".hugging_face.server": "sglang"},
            {".hugging_face.bucket": "our-models"},
            below(".hugging_face", context_length=8192, environment={"A": "1"}),
        ),
    ],
    Effect.NOT_KNOWN: [
        (
            {},
            below(
                ".latency", p50="150ms", p90="150ms", p95="150ms", p99_9="250ms", average="150ms"
            ),
            {".scaling": FIXED[".scaling"]},
            LINEAR,
        ),
        ({".alarms.model_latency": {"p99": "160ms"}}, {".alarms.model_latency": {"p90": "100ms"}}),
        (
            CANARY,
            {
                **below(".deployment.canary", size_percent=20, wait="6m"),
                **below(".deployment", termination_wait="2m", maximum_execution="1h"),
            },
            {".deployment.rollback_on_alarms": False},
        ),
        (LINEAR, below(".deployment.linear", step_percent=20, wait="6m")),
        (AT_ONCE, {".deployment.all_at_once.wait": "2m"}),
        (ROLLING, below(".deployment.rolling", batch_percent=20, wait="6m")),
    ],
    Effect.REFUSED: [
        (
            {},
            {".instance_type": LARGER},
            POOLS,
            {".variant_name": "blue"},
            {".throughput.peak_tps": 9000},  # 70 instances: no room in a /24
            {".instances.max": 80},
            HUB,
        ),
        (POOLS, {".instance_pools[0].instance_type": "ml.m6i.12xlarge"}),
        (CHALLENGED, {".variants": GONE}, {".variants.b.instance_type": LARGER}),
        (
            {".variants": {"b": {"scaling": {}}}, ".scaling": {"enabled": False}},
            {".instance_type": LARGER},
        ),
        (SHADOWED, {".shadow": GONE}, {".shadow.name": "other"}, {".shadow.instance_type": LARGER}),
        (
            SCHEDULE,
            {".scaling.schedule[0].max": 80},
            {".scaling.schedule[0].max": 5000},  # another size of the subnets
        ),
    ],
}
CASES: list[tuple[Changes, Changes, Effect | None]] = [
    (base, change, effect)
    for effect, rows in ((None, SHARED), *OF_ENDPOINTS.items())
    for base, *changes in rows
    for change in changes
]

#: Settings without a case: what they are goes along with another one that has one.
BESIDE = {
    "region": "zones name their Region, so that both change together",
    "private_link.interface_endpoint_id": "comes with security_group_id, with which it is a case",
}


#: Groups of a variant beside the first that are the endpoint's, each of them a case as a whole.
GROUP_OF_VARIANT = re.compile(
    r"endpoints\.\*\.(variants\.\*|shadow)\.(containers|hugging_face|instances|scaling|routing)\."
)


def changed(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    values = copy.deepcopy(values)
    for path, value in changes.items():
        whole = f"endpoints.sentiment{path}" if path.startswith(".") else path
        *groups, last = re.split(r"\.(?!9\b)", whole.replace("[0]", ".0"))
        at: Any = values
        for name in groups:
            at = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
        if value is GONE:
            del at[last]
        else:
            at[last] = copy.deepcopy(value)
    return values


@pytest.fixture(scope="module")
def folder(folder: Path) -> Path:
    (folder / "another").mkdir()
    newer = [replace(each, commit="8" * 40) for each in (QWEN, LLAMA)]
    written_lock(folder / "another", *newer)
    (folder / "another" / "Dockerfile").write_text("FROM busybox\n", encoding="utf-8")
    return folder


@cache
def loaded(text: str, folder: Path) -> Settings:
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path)


@cache
def template_of(text: str, folder: Path) -> dict[str, Any]:
    return synthesised(loaded(text, folder))


NAMES = [",".join(change) for _, change, _ in CASES]


@pytest.mark.parametrize(("base", "change", "effect"), CASES, ids=NAMES)
def test_a_setting_has_the_effect_that_the_tables_state(
    base: Changes, change: Changes, effect: Effect | None, folder: Path
) -> None:
    values = changed(BASE, base)
    before, after = (loaded(text_of(each), folder) for each in (values, changed(values, change)))
    comparison = compare(before, after)
    assert comparison.differences
    if before.stack_name != after.stack_name or before.account != after.account:
        names = [each.endpoint_name for each in after.endpoints.values()]
        refused = any(names) and before.account == after.account
        assert comparison.effect is (Effect.REFUSED if refused else Effect.NEW)
    elif effect is not None:
        assert comparison.effect is effect
        if len(change) > 1 and change is not HUB:
            assert {each.effect for each in comparison.differences} == {effect}


# Two templates take half a second. The cases without a stated effect come first.
@pytest.mark.parametrize(
    ("base", "change"),
    [
        *sampled([case[:2] for case in CASES if case[2] is None], 6),
        *sampled([case[:2] for case in CASES if case[2] is not None], 12),
    ],
    ids=NAMES,
)
def test_the_effect_of_a_setting_is_that_of_its_templates(
    base: Changes, change: Changes, folder: Path
) -> None:
    values = changed(BASE, base)
    texts = [text_of(each) for each in (values, changed(values, change))]
    before, after = (loaded(each, folder) for each in texts)
    if before.stack_name != after.stack_name or before.account != after.account:
        return  # two stacks, with nothing to compare
    comparison = compare(before, after)
    was, now = (template_of(each, folder) for each in texts)
    assert was != now or comparison.effect is Effect.NOTHING, (
        f"no template follows from {', '.join(change)}: read it in its construct (such as to_cfn of "
        "hosting/variant.py); touches=Touched((PLAN,)) is only of what the plan alone checks"
    )
    whole, of_endpoints = effects_of(was, now)
    # What is shared is updated with functions and tags of an endpoint too, while it serves.
    least = "IN_PLACE" if all(each.endpoint == "" for each in comparison.differences) else "NOTHING"
    of_endpoints = {key: _at_least(effect, least) for key, effect in of_endpoints.items()}
    said = {key: _at_least(each.effect.name, least) for key, each in comparison.outcomes.items()}
    assert (comparison.effect.name, said) == (whole, of_endpoints), (
        "plan --against says another effect than the templates show: state the option's in "
        f"touches= of its Option (options/): {comparison.to_dict()['differences']}"
    )
    for old, new in ((was, now), (now, was)):
        assert not narrowed(old, new) or change.keys() & TO_NARROW
        assert not shared_by_an_update(old, new) or effects_of(old, new)[0] == "REFUSED"


#: Settings that are there to take rights away at once.
TO_NARROW = {
    "network.narrow_s3",
    "private_link.bidirectional_streaming",
    "private_link.narrow_policy",
    "private_link.openai",
}


def _at_least(effect: str, least: str) -> str:
    return least if effect == "NOTHING" else effect


def leaves(node: dict[str, Any], path: tuple[str, ...], definitions: Any) -> Iterator[str]:
    """The settings of the schema, with a star for a key of one's own and for a list's place."""
    below: list[tuple[str, dict[str, Any]]] = []
    for each in (node, *node.get("anyOf", ()), *node.get("oneOf", ())):
        if "$ref" in each:
            each = definitions[each["$ref"].rsplit("/", 1)[-1]]
        below += (each.get("properties") or {}).items()
        free = [each.get("additionalProperties"), *(each.get("patternProperties") or {}).values()]
        below += [("*", one) for one in free if isinstance(one, dict)]
        if "$ref" in (each.get("items") or {}):
            below.append(("*", each["items"]))
    if not below:
        yield ".".join(path)
    for name, one in below:
        yield from leaves(one, (*path, name), definitions)


def test_every_setting_of_the_schema_has_a_case() -> None:
    """And so a named effect: a setting that no row of the tables names raises in its case."""
    schema = settings_json_schema()
    known = set(leaves(schema, (), schema["$defs"]))
    tried: list[str] = []
    for _, change, _ in CASES:
        for path, value in change.items():
            whole = f"endpoints.*{path}" if path.startswith(".") else path
            whole = whole.replace("[0]", ".*").replace("endpoints.second", "endpoints.*")
            tried += [whole, *within(value, whole)]
    missing = {
        leaf
        for leaf in known - set(BESIDE)
        if not leaf.startswith("prices.")  # one is as good as another
        if not GROUP_OF_VARIANT.match(leaf)
        if not any(re.fullmatch(pattern(leaf), path) for path in tried)
    }
    assert not missing, "add a change of it to OF_ENDPOINTS under its effect, or to SHARED"


def pattern(leaf: str) -> str:
    return re.escape(leaf).replace(r"\*", r"[^.]+")


def within(value: Any, path: str) -> Iterator[str]:
    """What a change of a whole group states."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield f"{path}.{name}"
            yield from within(each, f"{path}.{name}")
    elif isinstance(value, list):
        for each in value:
            yield from within(each, f"{path}.*")
