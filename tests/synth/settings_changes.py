"""Settings that hold, and changes of them: what tests of templates and of updates start from."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import yaml

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

OF_FILE = {"file": "model.tar.gz", "content_type": "text/plain"}


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
