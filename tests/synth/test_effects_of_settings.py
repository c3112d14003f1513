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

from fuzzing.agreement import folder_of_files, synthesised, text_of
from low_latency_endpoint.settings import Settings, load_settings, settings_json_schema
from low_latency_endpoint.settings.update.comparison import Comparison, compare
from low_latency_endpoint.settings.update.effects import Effect
from tests.pinned_models import LLAMA, QWEN, written_lock

from .names_and_rights import narrowed, shared_by_an_update
from .stack_changes import effects_of

SHIPPED = Path(__file__).parents[2] / "endpoint.yaml"
BASE = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
GONE = object()  # of a change: the setting is left out

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROLE = "arn:aws:iam::123456789012:role/one"
THREE_ZONES = {"client_zones.ids": ["use1-az1", "use1-az2", "use1-az4"]}
BY_NAME = {"client_zones": {"names": ["us-east-1a", "us-east-1b"]}}
EXISTING = {
    "network.vpc_id": "vpc-0123456789abcdef0",
    "network.subnets": {
        "use1-az1": "subnet-0123456789abcdef0",
        "use1-az2": "subnet-0123456789abcdef1",
    },
}
ADOPTED = {
    **EXISTING,
    "private_link.interface_endpoint_id": "vpce-0123456789abcdef0",
    "private_link.security_group_id": "sg-0123456789abcdef0",
}
FIRST = ".containers[0]"
URI = {".containers": [{"image": {"uri": "registry.example.com/scorer:1"}}]}
BUILT = {".containers": [{"image": {"asset": "container"}}]}
POOLS = {
    ".instance_pools": [
        {"instance_type": "ml.m7i.12xlarge", "priority": 1, "tps_per_instance": 300},
        {"instance_type": "ml.m5.12xlarge", "priority": 2, "tps_per_instance": 200},
    ]
}
LOGIN = "arn:aws:lambda:us-east-1:123456789012:function:%s"
PRIVATE = {
    **URI,
    f"{FIRST}.image.private_registry": True,
    f"{FIRST}.image.credentials_function_arn": LOGIN % "login",
}
MANY = {f"{FIRST}.multi_model": True, f"{FIRST}.data": {"s3": "s3://my-bucket/models/"}}
OWN = {".containers": [{"image": {"ecr": {"repository": "team/scorer", "tag": "1"}}}]}
TWO = {
    ".containers": [
        {"image": {"uri": "registry.example.com/one:1"}, "hostname": "one"},
        {"image": {"uri": "registry.example.com/two:1"}, "hostname": "two"},
    ],
    ".inference_mode": "Direct",
}
MANY = {
    ".containers": [
        {
            "image": {"uri": "registry.example.com/scorer:1"},
            "data": {"s3": "s3://my-bucket/models/"},
            "multi_model": True,
        }
    ]
}
FIXED = {".scaling": {"enabled": False, "keep_counts": False}}
LOCAL = {".instance_type": "ml.g5.xlarge", ".containers": URI[".containers"]}
LOCAL_KEY = {**LOCAL, "safeguards.kms_key_arn": KEY}
CONCURRENCY = {".scaling": {"metric": "concurrency", "concurrency_target": 4}}
SCHEDULE = {
    ".scaling.schedule": [{"name": "morning", "cron": "45 7 ? * MON-FRI *", "min": 8, "max": 40}]
}
LAUNCH = {".scaling.schedule": [{"name": "launch", "at": "2030-01-01T00:00:00", "min": 12}]}
DAILY = {".scaling.schedule": [{"name": "daily", "rate": "1 day", "max": 12}]}
STEPS = {".scaling.steps": {"adds": [{"requests": 8, "add": 2}, {"requests": 16, "add": 4}]}}
CAPTURE = {".data_capture": {"s3": "s3://my-bucket/captured/"}}
DUMP = {".core_dump": {"s3": "s3://my-bucket/dumps/"}}
LANGUAGE = {
    ".latency": {"ttft_p95": "500ms", "itl_p95": "50ms"},
    ".tokens": {"input": 512, "output": 128},
    ".throughput": {"peak_tps": 24, "tps_per_instance": 3, "concurrency_per_instance": 20},
}
OF_VLLM = {f"{FIRST}.image.dlc": {"repository": "vllm", "tag": "0.30.0-cpu"}, **LANGUAGE}
LENGTHS = {
    **LANGUAGE,
    ".tokens": {"input": {"p50": 300, "p95": 1800}, "output": {"p50": 100, "p95": 400}},
}
CHALLENGED = {".variants": {"b": {"weight": 1}}}
ONLY_B_SCALES = {".variants": {"b": {"scaling": {}}}, ".scaling": {"enabled": False}}
TWO_OF_ITS_OWN = {name.removeprefix("."): value for name, value in TWO.items()}
SHADOWED = {".shadow": {"name": "b"}}
FURTHER = (
    ("containers", URI[".containers"], {}),
    ("tps_per_instance", 150, {}),
    ("safety_factor", 0.4, {}),
    ("concurrency_per_instance", 24, {}),
    ("instances", {"max": 40}, {}),
    ("instances", {"initial": 9}, {}),
    ("scaling", {"scale_in_cooldown": "8m"}, {}),
    ("scaling", {"enabled": False}, {}),
    ("routing", "random", {}),
    ("startup_health_check_timeout", "6m", {}),
    ("model_data_download_timeout", "6m", {}),
    ("inference_ami", {"custom": "al9-ami-sagemaker-inference-gpu-9-1"}, {}),
    ("volume_size_gib", 64, {}),
    ("capacity_reservation_arn", "arn:aws:sagemaker:us-east-1:123456789012:training-plan/mine", {}),
)
HUB = {
    ".containers": GONE,
    ".hugging_face": {"model": "Qwen/Qwen3-8B"},
    ".instance_type": "ml.g6e.xlarge",
}
GATED = {
    **HUB,
    ".hugging_face": {"model": "meta-llama/Llama-3.1-8B-Instruct", "accept_license": "llama3.1"},
}
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf"
KEEP_WARM = {".warm_up.keep_warm": {"every": "1m"}}
CANARY = {".deployment": {"canary": {"size_percent": 10, "wait": "5m"}}}
LINEAR = {".deployment": {"linear": {"step_percent": 25, "wait": "5m"}}}
AT_ONCE = {".deployment": {"all_at_once": {"wait": "1m"}}}
ROLLING = {".deployment": {"rolling": {"batch_percent": 25, "wait": "5m"}}}
PREFIX = {".routing": {"prefix_aware": {"prefix_length": 1024, "concurrency_threshold": 16}}}
TRIED = {".recommendation": {"instance_types": ["ml.c6i.4xlarge"]}}
STAIRS = {**TRIED, ".recommendation.stairs": {"steps": 3, "users_per_step": 2, "duration": "2m"}}
PHASES = {**TRIED, ".recommendation.phases": [{"users": 2, "spawn_rate": 2, "duration": "2m"}]}
SECOND = {
    "containers": URI[".containers"],
    "instance_type": "ml.m5.large",
    "latency": {"p99": "300ms"},
}

STATISTICS = ("Average", "Maximum", "Minimum", "p50", "p90", "p95", "p99", "p99.9", "p98")

#: The change, and what else the file says before and after it. A path that begins with a dot is the
#: endpoint's. Settings of one change do the same, each of them.
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"stack_name": "Other"}, {}),
    ({"stack_name": "Other"}, {".endpoint_name": GONE}),
    ({"account": "123456789013"}, {"account": "123456789012"}),
    (THREE_ZONES, {}),
    ({"client_zones.ids": ["use1-az1", "use1-az2"]}, THREE_ZONES),
    ({"client_zones.ids": ["use1-az2", "use1-az1"]}, {}),
    ({"client_zones.ids": ["use1-az1", "use1-az4"]}, {}),
    (BY_NAME, {}),
    ({"client_zones.names": ["us-east-1a", "us-east-1c"]}, BY_NAME),
    (EXISTING, {}),
    ({"network.vpc_id": "vpc-0123456789abcdef1"}, EXISTING),
    ({"network.subnets.use1-az2": "subnet-0123456789abcdef3"}, EXISTING),
    ({"network.cidr": "10.1.0.0/16"}, {}),
    ({"network.cidr": "10.0.0.0/16"}, {}),
    ({"network.subnet_prefix_length": 23}, {}),
    ({"network.subnet_prefix_length": 26}, {"network.subnet_prefix_length": 24, **FIXED}),
    ({"network.flow_logs": "all"}, {}),
    ({"network.flow_logs": "reject"}, {}),
    ({"network.flow_logs": False}, {}),
    ({"network.flow_logs": "all"}, {"network.flow_logs": False}),
    ({"network.s3_prefix_list": "pl-63a5400a"}, {}),
    ({"network.narrow_s3": True}, {}),
    ({"network.s3_buckets": ["another-bucket"]}, {}),
    ({key: ADOPTED[key] for key in ADOPTED if key not in EXISTING}, EXISTING),
    ({"private_link": {}}, ADOPTED),
    ({"private_link.security_group_id": "sg-0123456789abcdef1"}, ADOPTED),
    ({"private_link.allow_cidrs": ["10.0.0.0/16", "10.2.0.0/16"]}, {}),
    ({"private_link.allow_cidrs": ["10.0.0.0/16"]}, {}),
    ({"private_link.hosted_zone_vpc_ids": ["vpc-0fedcba9876543210"]}, {}),
    (
        {"private_link.hosted_zone_vpc_ids": []},
        {"private_link.hosted_zone_vpc_ids": ["vpc-0fedcba9876543210"]},
    ),
    (
        {"private_link.hosted_zone_vpc_ids": ["vpc-0fedcba9876543210", "vpc-0fedcba9876543211"]},
        {"private_link.hosted_zone_vpc_ids": ["vpc-0fedcba9876543210"]},
    ),
    ({"private_link.fips": True}, {}),
    ({"private_link.private_dns": False}, {}),
    ({"private_link.private_dns": True}, {}),
    ({"private_link.bidirectional_streaming": True}, {}),
    ({"private_link.endpoint_policy": False}, {}),
    ({"private_link.narrow_policy": False}, {}),
    ({"private_link.openai": True}, {}),
    ({"private_link.sagemaker_api": True}, {}),
    ({"private_link.sagemaker_api": False}, {"private_link.sagemaker_api": True}),
    ({"parameters": "/low-latency"}, {}),
    ({"parameters": None}, {"parameters": "/low-latency"}),
    ({"parameters": "/other"}, {"parameters": "/low-latency"}),
    ({"alarm_topic_arn": "arn:aws:sns:us-east-1:123456789012:on-call"}, {}),
    ({"safeguards.kms_key_arn": KEY}, {}),
    ({"safeguards.kms_key_arn": KEY}, LOCAL),
    ({"safeguards.kms_key_arn": KEY}, {**LOCAL, **CAPTURE}),
    ({"safeguards.kms_key_arn": KEY}, {".kms_key_arn": KEY}),
    ({"safeguards.log_retention_days": 365}, {}),
    ({"safeguards.function_role_arn": ROLE}, {}),
    ({"safeguards.flow_log_role_arn": ROLE}, {}),
    ({"tags.team": "nlp"}, {}),
    ({"prices": {"interface_endpoint": 0.02}}, {}),
    ({"endpoints.second": SECOND}, {}),
    ({"endpoints.second": GONE}, {"endpoints.second": SECOND}),
    # The key names the resources: the endpoint's own name is taken then, as long as both are there.
    ({"endpoints": {"mood": BASE["endpoints"]["sentiment"]}}, {}),
    ({".endpoint_name": "mood"}, {}),
    ({".endpoint_name": "Sentiment"}, {}),
    ({".endpoint_name": GONE}, {}),
    ({".endpoint_name": "mood", ".instance_type": "ml.m5.24xlarge"}, {}),
    ({f"{FIRST}.image": {"uri": "registry.example.com/scorer:1"}}, {}),
    ({f"{FIRST}.image.dlc.repository": "pytorch-inference"}, {}),
    ({f"{FIRST}.image.dlc.tag": "2.7.0-cpu-py312-ubuntu22.04"}, {}),
    ({f"{FIRST}.image.dlc.account": "763104351885"}, {}),
    ({f"{FIRST}.image.uri": "registry.example.com/scorer:2"}, URI),
    ({f"{FIRST}.image.private_registry": True}, URI),
    ({f"{FIRST}.image.credentials_function_arn": LOGIN % "other"}, PRIVATE),
    ({f"{FIRST}.image.ecr.repository": "team/other"}, OWN),
    ({f"{FIRST}.image.ecr.tag": "2"}, OWN),
    ({f"{FIRST}.image.asset": "another"}, BUILT),
    ({f"{FIRST}.image.file": "Other"}, BUILT),
    ({f"{FIRST}.image.build_args": {"MODEL": "small"}}, BUILT),
    ({f"{FIRST}.image.platform": "linux/amd64"}, {**BUILT, ".instance_type": "ml.unknown.large"}),
    ({f"{FIRST}.data.s3": "s3://my-bucket/other/model.tar.gz"}, {}),
    ({f"{FIRST}.data": {"s3_prefix": "s3://my-bucket/b/"}}, {}),
    ({f"{FIRST}.data.accept_eula": True}, {f"{FIRST}.data": {"s3_prefix": "s3://my-bucket/a/"}}),
    (
        {f"{FIRST}.data.s3_prefix": "s3://my-bucket/b/"},
        {f"{FIRST}.data": {"s3_prefix": "s3://my-bucket/a/"}},
    ),
    ({f"{FIRST}.data": {"asset": "model.tar.gz"}}, {}),
    ({f"{FIRST}.data.kms_key_arn": KEY}, {}),
    ({f"{FIRST}.data.kms_key_arn": KEY}, {".role_arn": ROLE}),
    ({f"{FIRST}.data.kms_key_arn": GONE}, {f"{FIRST}.data.kms_key_arn": KEY}),
    ({f"{FIRST}.data.kms_key_arn": KEY}, {f"{FIRST}.data": {"asset": "model.tar.gz"}}),
    ({f"{FIRST}.environment.HF_TASK": "fill-mask"}, {}),
    ({f"{FIRST}.hostname": "another"}, TWO),
    ({f"{FIRST}.multi_model": True, f"{FIRST}.data": {"s3": "s3://my-bucket/models/"}}, {}),
    ({f"{FIRST}.model_cache": False}, MANY),
    ({f"{FIRST}.model_package": "fraud/8"}, {f"{FIRST}.model_package": "fraud/7"}),
    ({f"{FIRST}.model_package": "fraud/7"}, {}),
    ({".inference_mode": "Serial"}, TWO),
    ({".instance_type": "ml.m5.24xlarge"}, {}),
    ({".instance_type": "ml.m5.24xlarge"}, FIXED),
    ({".instance_pools": POOLS[".instance_pools"]}, {}),
    ({".instance_pools[0].priority": 3}, POOLS),
    ({".instance_pools[0].instance_type": "ml.m6i.12xlarge"}, POOLS),
    ({".instance_pools[0].tps_per_instance": 320}, POOLS),
    ({".variant_name": "blue"}, {}),
    ({".variant_name": "blue"}, FIXED),
    ({".latency.p99": "150ms"}, {}),
    ({".latency.p99": "50ms"}, {}),
    ({".latency.p50": "150ms"}, {}),
    ({".latency.p90": "150ms"}, {}),
    ({".latency.p95": "150ms"}, {}),
    ({".latency.p99_9": "250ms"}, {}),
    ({".latency.average": "150ms"}, {}),
    (
        {
            f".latency.{kind}_{each}": value
            for kind, value in (("ttft", "500ms"), ("itl", "50ms"))
            for each in ("p50", "p90", "p99")
        },
        LANGUAGE,
    ),
    ({".latency.ttft_p95": "400ms"}, LANGUAGE),
    ({".latency.itl_p95": "40ms"}, LANGUAGE),
    ({".latency.ttft_p95": "400ms"}, {}),
    ({".latency.ttft_p95": "400ms"}, OF_VLLM),
    ({".latency.itl_p99": "90ms"}, OF_VLLM),
    ({".variants": {"b": {"weight": 1}}}, OF_VLLM),
    ({f"{FIRST}.image.dlc.repository": "sglang"}, OF_VLLM),
    ({".alarms.tokens.server": "sglang"}, LANGUAGE),
    ({".alarms.tokens.server": "vllm"}, OF_VLLM),  # as the image's name says
    ({".alarms.tokens.ttft": {"p95": "450ms"}}, OF_VLLM),
    ({".alarms.tokens.ttft": {"p95": "450ms"}}, LANGUAGE),  # of no known server: no alarm
    ({".alarms.tokens.itl": {"p90": "45ms"}}, OF_VLLM),
    (
        {
            f".alarms.tokens.{kind}.{each}": "350ms"
            for kind in ("ttft", "itl")
            for each in ("p50", "p90", "p95", "p99")
        },
        OF_VLLM,
    ),
    ({".alarms.tokens.waiting_requests": 4}, OF_VLLM),
    ({".alarms.tokens.kv_cache_use": 0.95}, OF_VLLM),
    ({".alarms.tokens.kv_cache_use": 0.95}, {".alarms.tokens.server": "vllm"}),
    ({".alarms.tokens.minimum_requests": 5}, OF_VLLM),
    ({".streaming": True}, {}),
    ({".tokens": LANGUAGE[".tokens"]}, {}),
    ({".tokens": {"input": 600, "output": 256, "shared_prefix": 0.5}}, LANGUAGE),
    ({".tokens.shared_prefix": 0.5}, LANGUAGE),
    ({".tokens.input.p50": 200}, LENGTHS),
    ({".tokens.input.p95": 2000}, LENGTHS),
    ({".tokens.output.p50": 50}, LENGTHS),
    ({".tokens.output.p95": 500}, LENGTHS),
    ({".throughput.concurrency_per_instance": 24}, LANGUAGE),
    ({".throughput.concurrency_per_instance": GONE}, LANGUAGE),
    ({".throughput.concurrency_per_instance": 24}, {}),  # of what is no language model
    ({".scaling.metric": "invocations"}, LANGUAGE),
    ({".throughput.peak_tps": 2000}, {}),
    ({".throughput.peak_tps": 1001}, {}),  # 7.7 instances, as with 1,000: eight
    ({".throughput.peak_tps": 2000}, {".instances": {"initial": 8, "max": 16}}),
    ({".throughput.peak_tps": 9000}, {}),  # 70 instances: no room in a /24
    ({".throughput.tps_per_instance": 250}, {}),
    ({".throughput.safety_factor": 0.5}, {}),
    ({".throughput.rise_tps_per_minute": 12}, {}),  # 15 / 7: three instead of two at least
    ({".throughput.rise_tps_per_minute": 11}, {}),  # 1.96, as with ten: two
    ({".throughput.from_tps": 0}, {".throughput.rise_tps_per_minute": GONE}),
    ({".throughput": GONE}, {}),
    (CHALLENGED, {}),
    ({".variants": GONE}, CHALLENGED),
    ({".variants": GONE}, {".variants": {"b": {"scaling": {"enabled": False}}}, **FIXED}),
    ({".variant_weight": 9}, {}),
    ({".variant_weight": 9}, CHALLENGED),
    ({".throughput.peak_tps": 400}, CHALLENGED),
    ({".routing": "random"}, CHALLENGED),
    ({".instance_type": "ml.m5.24xlarge"}, {**CHALLENGED, **FIXED}),
    ({".instance_type": "ml.m5.24xlarge"}, ONLY_B_SCALES),
    *(
        ({f".variants.b.{name}": value}, {**CHALLENGED, **further})
        for name, value, further in (
            ("weight", 0.5, {}),
            ("instance_type", "ml.m5.24xlarge", {}),
            ("instance_type", "ml.m5.24xlarge", {".variants.b.scaling": {"enabled": False}}),
            *FURTHER,
        )
    ),
    ({".variants.b.inference_mode": "Serial"}, {".variants": {"b": TWO_OF_ITS_OWN}}),
    (
        {".variants.b.containers[0].data.kms_key_arn": KEY},
        {".variants": {"b": {"containers": MANY[".containers"]}}},
    ),
    ({".shadow.inference_mode": "Serial"}, {".shadow": {"name": "b", **TWO_OF_ITS_OWN}}),
    (SHADOWED, {}),
    ({".shadow": GONE}, SHADOWED),
    ({".shadow.name": "other"}, SHADOWED),
    ({".shadow.share": 0.5}, SHADOWED),
    (
        {".shadow.hugging_face": HUB[".hugging_face"]},
        {**LOCAL, ".instance_type": "ml.g6e.xlarge", **SHADOWED},
    ),
    *(({f".shadow.{name}": value}, SHADOWED) for name, value, _ in FURTHER),
    ({".shadow.instance_type": "ml.m5.24xlarge"}, SHADOWED),
    *(
        ({f".{place}.scaling.{name}": value}, {**base, f".{place}.scaling.{name}": before})
        for place, base in (("variants.b", CHALLENGED), ("shadow", SHADOWED))
        for name, before, value in (
            ("scale_in_cooldown", "5m", "6m"),
            ("scale_out_cooldown", "1m", "2m"),
            ("instance_start", "4m", "6m"),
        )
    ),
    ({".payload_bytes": 8_000_000}, {}),
    ({".routing": "random"}, {}),
    ({".routing": "least_outstanding_requests"}, {}),
    ({".routing.prefix_aware.prefix_length": 2048}, PREFIX),
    ({".routing.prefix_aware.concurrency_threshold": 8}, PREFIX),
    ({".instances.min": 3}, {}),
    ({".instances.min": 2}, {}),
    ({".instances.initial": 9}, {}),
    ({".instances.max": 20}, {}),
    ({".instances.max": 80}, {}),
    ({".scaling.enabled": False}, {}),
    ({".scaling": FIXED[".scaling"]}, {}),
    ({".scaling": FIXED[".scaling"], ".volume_size_gib": 64}, {}),
    ({".scaling.keep_counts": True}, {}),
    (CONCURRENCY, {}),
    ({".scaling.concurrency_target": 6}, CONCURRENCY),
    ({".scaling.invocations_target": 500}, {}),
    ({".scaling.scale_in_cooldown": "10m"}, {}),
    ({".scaling.scale_in_cooldown": "5m"}, {}),
    ({".scaling.scale_out_cooldown": "2m"}, {}),
    ({".scaling.schedule": SCHEDULE[".scaling.schedule"]}, {}),
    ({".scaling.schedule[0].name": "early"}, SCHEDULE),
    ({".scaling.schedule[0].cron": "30 7 ? * MON-FRI *"}, SCHEDULE),
    ({".scaling.schedule[0].time_zone": "Europe/Berlin"}, SCHEDULE),
    ({".scaling.schedule[0].min": 9}, SCHEDULE),
    ({".scaling.schedule[0].max": 80}, SCHEDULE),
    ({".scaling.schedule[0].max": 5000}, SCHEDULE),  # another size of the subnets
    ({".scaling.schedule[0].at": "2030-01-02T03:04:05"}, LAUNCH),
    ({".scaling.schedule[0].rate": "2 days"}, DAILY),
    ({".scaling.schedule": GONE}, SCHEDULE),
    ({".scaling.steps": STEPS[".scaling.steps"]}, {}),
    ({".scaling.steps.metric": "invocations"}, STEPS),
    ({".scaling.steps.adds[0].requests": 6}, STEPS),
    ({".scaling.steps.adds[0].add": 3}, STEPS),
    ({".scaling.steps.periods": 3}, STEPS),
    ({".scaling.steps.cooldown": "2m"}, STEPS),
    ({".scaling.steps": GONE}, STEPS),
    ({".scaling.instance_start": "6m"}, {}),  # 10 x 14.5 / 70: three at least
    ({".scaling.instance_start": "4m"}, {}),  # two, as before
    ({".confirm_updates": False}, {}),
    (CANARY, {}),
    ({".deployment.canary.size_percent": 20}, CANARY),
    ({".deployment.canary.wait": "6m"}, CANARY),
    (LINEAR, {}),
    ({".deployment.linear.step_percent": 20}, LINEAR),
    ({".deployment.linear.wait": "6m"}, LINEAR),
    ({".deployment.all_at_once.wait": "2m"}, AT_ONCE),
    ({".deployment.rolling.batch_percent": 20}, ROLLING),
    ({".deployment.rolling.wait": "6m"}, ROLLING),
    ({".deployment.termination_wait": "2m"}, CANARY),
    ({".deployment.maximum_execution": "1h"}, CANARY),
    ({".deployment.rollback_on_alarms": False}, CANARY),
    ({".deployment.rollback_on_alarms": False, f"{FIRST}.environment.HF_TASK": "x"}, CANARY),
    (
        {f".alarms.model_latency.{name}": "150ms" for name in STATISTICS},
        {".alarms.model_latency": dict.fromkeys(STATISTICS, "160ms")},
    ),
    ({".alarms.model_latency": {"p90": "100ms"}}, {".alarms.model_latency": {"p99": "160ms"}}),
    ({".alarms.model_latency": {"p99": "160ms"}}, {}),
    (
        {f".alarms.overhead_latency.{name}": "30ms" for name in STATISTICS[:3]},
        {".alarms.overhead_latency": dict.fromkeys(STATISTICS[:3], "40ms")},
    ),
    ({".alarms.error_rate": 0.02}, {}),
    ({".alarms.client_error_rate": 0.05}, {}),
    ({".alarms.model_error_rate": 0.05}, LOCAL),
    ({".alarms.minimum_invocations": 50}, {}),
    ({".alarms.slow_requests": {"threshold": "150ms"}}, {}),
    (
        {".alarms.slow_requests.threshold": "160ms"},
        {".alarms.slow_requests": {"threshold": "150ms"}},
    ),
    ({".alarms.slow_requests.objective": 0.95}, {".alarms.slow_requests": {"threshold": "150ms"}}),
    ({".alarms.cpu_utilization": 50}, {}),
    ({".alarms.memory_utilization": 50}, {}),
    ({".alarms.disk_utilization": 50}, {}),
    ({".alarms.gpu_utilization": 50}, LOCAL),
    ({".alarms.gpu_memory_utilization": 50}, LOCAL),
    ({".alarms.cache_miss_rate": 0.05}, MANY),
    ({".alarms.model_loading_wait": "1s"}, MANY),
    ({".alarms.capacity_at_maximum": False}, {}),
    ({".alarms.zone_imbalance": 1.5}, {}),
    ({".alarms.expect_traffic": True}, {}),
    ({".alarms.quiet_during_deployments": True}, {}),
    # What holds where nothing is stated.
    (
        {
            ".alarms.error_rate": 0.01,
            ".alarms.minimum_invocations": 20,
            ".alarms.cpu_utilization": 85,
            ".alarms.memory_utilization": 90,
            ".alarms.disk_utilization": 90,
            ".alarms.capacity_at_maximum": True,
            ".alarms.expect_traffic": False,
            ".alarms.quiet_during_deployments": False,
        },
        {},
    ),
    ({".dashboard": False}, {}),
    ({".warm_up": GONE}, {}),
    ({".warm_up.payload.data.inputs": "Another."}, {}),
    ({".warm_up.payload.text": "two"}, {".warm_up.payload": {"text": "one"}}),
    (
        {".warm_up.payload": {"file": "payload.json", "content_type": "text/plain"}},
        {".warm_up.payload": {"file": "model.tar.gz", "content_type": "text/plain"}},
    ),
    ({".warm_up.payload.content_type": "text/plain"}, {}),
    ({".warm_up.payload.target_model": "a.tar.gz"}, {}),
    ({".warm_up.requests": 500}, {}),
    (
        {
            ".warm_up.concurrency_per_zone": 5,
            ".warm_up.last": 40,
            ".warm_up.timeout": "5m",
            ".warm_up.on_miss": "warn",
            ".warm_up.during_deployments": False,
            ".warm_up.metrics": True,
            ".warm_up.reserve_concurrency": True,
        },
        {},
    ),
    ({".warm_up.keep_warm": {"every": "2m"}}, {}),
    (
        {
            ".warm_up.keep_warm.every": "2m",
            ".warm_up.keep_warm.requests_per_zone": 2,
            ".warm_up.keep_warm.below_tps": 7,
            ".warm_up.keep_warm.window": "10m",
        },
        KEEP_WARM,
    ),
    ({".metrics": {"enhanced": True}}, {}),
    ({".metrics.enhanced": True}, {".metrics": {"enhanced": False}}),
    ({".metrics.detailed_observability": False}, {".metrics": {"enhanced": False}}),
    ({".metrics.publish_frequency": "10s"}, {".metrics": {"enhanced": False}}),
    ({".network_isolation": True}, {}),
    ({".role_arn": ROLE}, {}),
    ({".startup_health_check_timeout": "6m"}, {}),
    ({".model_data_download_timeout": "6m"}, {}),
    ({".volume_size_gib": 64}, {}),
    ({".inference_ami": {"custom": "al9-ami-sagemaker-inference-gpu-9-1"}}, LOCAL),
    ({".ssm_access": True}, {}),
    (
        {
            ".capacity_reservation_arn": "arn:aws:sagemaker:us-east-1:123456789012:"
            "training-plan/mine"
        },
        {},
    ),
    (DUMP, {}),
    ({".core_dump.s3": "s3://my-bucket/other/", ".core_dump.kms_key_arn": KEY}, DUMP),
    ({".kms_key_arn": KEY}, {}),
    ({".kms_key_with_local_storage": True}, {}),
    ({".kms_key_with_local_storage": True}, LOCAL_KEY),
    (CAPTURE, {}),
    (
        {
            ".data_capture.s3": "s3://my-bucket/other/",
            ".data_capture.kms_key_arn": KEY,
            ".data_capture.capture": ["input"],
            ".data_capture.csv_content_types": ["text/csv"],
            ".data_capture.json_content_types": ["application/json"],
            ".data_capture.sampling_percentage": 20,
        },
        CAPTURE,
    ),
    ({".tags.team": "nlp"}, {}),
    (HUB, {}),
    ({".hugging_face": GATED[".hugging_face"]}, HUB),
    ({".hugging_face.accept_license": "apache-2.0"}, HUB),
    ({".hugging_face.lock": "another/models.lock.yaml"}, HUB),
    ({".hugging_face.server": "sglang"}, HUB),
    ({".hugging_face.context_length": 8192}, HUB),
    ({".hugging_face.trust_remote_code": True}, HUB),
    ({".hugging_face.environment": {"A": "1"}}, HUB),
    ({".hugging_face.bucket": "our-models"}, HUB),
    ({".hugging_face.token_secret_arn": SECRET}, HUB),
    ({".hugging_face.hub_endpoint": "https://hub.example.com"}, HUB),
    ({".recommendation.instance_types": ["ml.c6i.4xlarge"]}, {}),
    ({".recommendation.stairs": STAIRS[".recommendation.stairs"]}, TRIED),
    ({".recommendation.phases": PHASES[".recommendation.phases"]}, TRIED),
    (
        {
            ".recommendation.stairs.steps": 4,
            ".recommendation.stairs.users_per_step": 3,
            ".recommendation.stairs.duration": "3m",
        },
        STAIRS,
    ),
    (
        {
            ".recommendation.phases[0].users": 3,
            ".recommendation.phases[0].spawn_rate": 1,
            ".recommendation.phases[0].duration": "3m",
        },
        PHASES,
    ),
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
def folder() -> Iterator[Path]:
    with folder_of_files() as made:
        (made / "another").mkdir()
        newer = [replace(each, commit="8" * 40) for each in (QWEN, LLAMA)]
        written_lock(made / "another", *newer)
        (made / "another" / "Dockerfile").write_text("FROM busybox\n", encoding="utf-8")
        yield made


@cache
def loaded(text: str, folder: Path) -> tuple[Settings, dict[str, Any]]:
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    settings = load_settings(path)
    return settings, synthesised(settings)


def both(case: int, folder: Path) -> tuple[Comparison, dict[str, Any], dict[str, Any]]:
    changes, base = CASES[case]
    values = changed(BASE, base)
    (before, was), (after, now) = (
        loaded(text_of(each), folder) for each in (values, changed(values, changes))
    )
    return compare(before, after), was, now


@pytest.mark.parametrize("case", range(len(CASES)), ids=lambda case: ",".join(CASES[case][0]))
def test_the_effect_of_a_setting_is_that_of_its_templates(case: int, folder: Path) -> None:
    comparison, was, now = both(case, folder)
    assert comparison.differences
    if comparison.before.stack_name != comparison.after.stack_name or (
        comparison.before.account != comparison.after.account
    ):
        names = [each.endpoint_name for each in comparison.after.endpoints.values()]
        moved = comparison.before.account != comparison.after.account
        expected = Effect.REFUSED if any(names) and not moved else Effect.NEW
        assert comparison.effect is expected
        return
    together = CASES[case][0]
    if (
        len({path.rpartition(".")[0] for path in together})
        == 1
        < min(path.count(".") for path in together)
    ):
        assert {each.effect for each in comparison.differences} == {comparison.effect}
    whole, of_endpoints = effects_of(was, now)
    # What is shared is updated with functions and tags of an endpoint too, while it serves.
    least = "IN_PLACE" if all(each.endpoint == "" for each in comparison.differences) else "NOTHING"
    of_endpoints = {key: _at_least(effect, least) for key, effect in of_endpoints.items()}
    said = {key: _at_least(each.effect.name, least) for key, each in comparison.outcomes.items()}
    assert (comparison.effect.name, said) == (whole, of_endpoints), comparison.to_dict()[
        "differences"
    ]
    for old, new in ((was, now), (now, was)):
        assert not narrowed(old, new) or together.keys() & TO_NARROW
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
    for changes, _ in CASES:
        for path, value in changes.items():
            whole = f"endpoints.*{path}" if path.startswith(".") else path
            whole = whole.replace("[0]", ".*").replace("endpoints.second", "endpoints.*")
            tried += [whole, *below(value, whole)]
    missing = {
        leaf
        for leaf in known - set(BESIDE)
        if not leaf.startswith("prices.")  # one is as good as another
        if not GROUP_OF_VARIANT.match(leaf)
        if not any(re.fullmatch(pattern(leaf), path) for path in tried)
    }
    assert not missing


def pattern(leaf: str) -> str:
    return re.escape(leaf).replace(r"\*", r"[^.]+")


def below(value: Any, path: str) -> Iterator[str]:
    """What a change of a whole group states."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield f"{path}.{name}"
            yield from below(each, f"{path}.{name}")
