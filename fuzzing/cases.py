"""Settings files that come near to right ones, made from the schema and from files that hold.

Every choice is asked of a ``random.Random``, or of Hypothesis in its place, which then finds the
smallest case that fails.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import yaml

from low_latency_endpoint.settings import settings_json_schema

ROOT = Path(__file__).parents[1]
SCHEMA = settings_json_schema()
Place = tuple[str | int, ...]

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
DLC = {"repository": "huggingface-pytorch-inference"}
CPU = {"dlc": {**DLC, "tag": "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04"}}
GPU = {"dlc": {**DLC, "tag": "2.6.0-transformers4.51.3-gpu-py312-cu124-ubuntu22.04"}}
VPC = "vpc-0123456789abcdef0"

#: Files beside the settings file.
FILES = {
    "model.tar.gz": b"packed",
    "container/Dockerfile": b"FROM scratch\n",
    "container/Other": b"FROM scratch\n",
    "no-dockerfile/readme": b"",
    "payload.json": b"{}",
    "folder.tar.gz/readme": b"",
}

#: Right values for texts, by the name of the setting.
TEXTS: dict[str, tuple[Any, ...]] = {
    "account": ("123456789012", "012345678901", "763104351884"),
    "alarm_topic_arn": (
        "arn:aws:sns:us-east-1:123456789012:on-call",
        "arn:aws:sns:us-east-1:123456789012:on-call.fifo",
    ),
    "parameters": ("/low-latency", "/team-1/nlp.v2/low_latency"),
    "allow_cidrs": ("10.0.0.0/16", "0.0.0.0/0", "192.168.0.0/24"),
    "asset": ("model.tar.gz", "container"),
    "capacity_reservation_arn": ("arn:aws:sagemaker:us-east-1:123456789012:training-plan/mine",),
    "cidr": ("10.0.0.0/16", "10.1.0.0/20", "10.0.0.0/24", "10.0.0.0/28", "172.16.0.0/18"),
    "content_type": ("application/json", "text/csv"),
    "endpoint_name": ("sentiment", "Scorer-7", "a", "x" * 63),
    "file": ("payload.json", "Dockerfile", "Other"),
    "hosted_zone_vpc_ids": ("vpc-0fedcba9876543210", "vpc-0123456789abcdef1"),
    "hostname": ("tokenizer", "scorer", "third"),
    "ids": (
        "use1-az1",
        "use1-az2",
        "use1-az3",
        "use1-az4",
        "use1-az5",
        "use1-az6",
        "use1-az99",
        "use1-bos1-az1",
    ),
    "instance_type": (
        "ml.m5.large",
        "ml.m5.12xlarge",
        "ml.g5.xlarge",
        "ml.c7g.xlarge",
        "ml.t2.medium",
        "ml.inf1.xlarge",
        "ml.inf2.xlarge",
        "ml.m5d.large",
        "ml.g5.48xlarge",
        "ml.m9.nano",
        "ml.inf1.new",
        "ml.p5.48xlarge",
    ),
    "instance_types": ("ml.m5.large", "ml.g5.xlarge"),
    "interface_endpoint_id": ("vpce-0123456789abcdef0",),
    "kms_key_arn": (KEY, "arn:aws:kms:us-east-1:123456789012:alias/mine"),
    "names": ("us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1z"),
    "region": ("us-east-1", "eu-central-1", "mx-central-1", "us-gov-west-1", "ap-east-2"),
    "repository": ("huggingface-pytorch-inference", "team/my-model", "pytorch-inference"),
    "role_arn": (
        "arn:aws:iam::123456789012:role/model-role",
        "arn:aws:iam::123456789012:role/service/deep/model-role",
        "arn:aws:iam::999999999999:role/foreign",
    ),
    "s3": (
        "s3://my-bucket/model.tar.gz",
        "s3://my-bucket/models/",
        "s3://my-bucket/x/model",
        "https://my-bucket.s3.amazonaws.com/model.tar.gz",
        "s3://my-bucket",
    ),
    "s3_prefix": ("s3://my-bucket/model/",),
    "security_group_id": ("sg-0123456789abcdef0",),
    "stack_name": ("LowLatencyEndpoint", "A", "x-" * 64),
    "tag": (
        "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04",
        "latest",
        "1.10",
        "2.6.0-transformers4.51.3-gpu-py312-cu124-ubuntu22.04",
    ),
    "target_model": ("model-a.tar.gz",),
    "text": ("5.1,3.5", "zwölf"),
    "uri": (
        "registry.example.com/scorer:1",
        "123456789012.dkr.ecr.us-east-1.amazonaws.com/my-model:1.4.2",
    ),
    "variant_name": ("primary", "A-1"),
    "vpc_id": (VPC,),
    "custom": ("al2027-ami-1",),
}
DURATIONS = ("0s", "1ms", "33.3ms", "200ms", "1s", "10s", "60s", "90s", "5m", "2m", "1h", "8h")
KEYS: dict[str, tuple[str, ...]] = {
    "endpoints": (
        "sentiment",
        "scorer",
        "Network",
        "a",
        "sentiment-Key",
        "Default",
        "Resource",
        "x" * 63,
    ),
    "environment": ("HF_TASK", "WORKERS", "_"),
    "tags": ("team", "tier", "Name"),
    "prices": ("ml.m5.large", "interface_endpoint"),
    "build_args": ("MODEL",),
    "subnets": ("use1-az1", "use1-az2", "us-east-1a", "us-east-1b"),
    "model_latency": ("p99", "p99.9", "Average", "p50", "Maximum", "p1", "tm99", "PR(1:2)"),
    "overhead_latency": ("Average", "Maximum"),
}
#: Values that are wrong nearly everywhere, or at the edge of being right.
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    10,
    1000,
    10**6,
    10**18,
    0.5,
    1.5,
    1e-9,
    1e300,
    "",
    "a",
    "no",
    "x" * 2000,
    [],
    {},
    [None],
    {"a": 1},
    "${Token[TOKEN.12]}",
    "#{Token[TOKEN.7]}",
    "٢٠٠ms",
    "٣",
    "a\nb",
    "a\x00b",
    "\ud800",
    "a\u2028b",
    "é",
    "s3://b/x",
    "s3://UPPER/x",
    "s3://a..b/x",
    "${AWS::Region}",
    "{{resolve:ssm:x}}",
    "../..",
    "10.0.0.0/255.255.0.0",
    "0.0.0.0/33",
    "use1-az1",
    "us-west-2a",
    "ml.t2.medium",
    "ml.inf1.xlarge",
    "Direct",
    "Serial",
    "concurrency",
    "Tree",
    "CDKMetadata",
    "1e5",
    "010",
    "1:30",
    "200 ms",
    "1.5m",
    "100h",
    "999999999999h",
)


def bases() -> list[Any]:
    """Settings that hold: the shipped files, the documentation's, and one for each kind."""
    return [copy.deepcopy(each) for each in [*_shipped(), *_kinds()]]


def _shipped() -> Iterator[Any]:
    texts = [path.read_text() for path in (ROOT / "endpoint.yaml", *ROOT.glob("examples/*.yaml"))]
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")]):
        texts += re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)
    for text in texts:
        try:
            values = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        if isinstance(values, dict) and {"client_zones", "endpoints"} <= set(values):
            yield values


def _kinds() -> Iterator[Any]:
    def one(shared: dict[str, Any] | None = None, **endpoint: Any) -> dict[str, Any]:
        return {
            "client_zones": {"ids": ["use1-az1", "use1-az2"]},
            **(shared or {}),
            "endpoints": {
                "scorer": {
                    "containers": [{"image": {"uri": "registry.example.com/scorer:1"}}],
                    "instance_type": "ml.m5.large",
                    "latency": {"p99": "200ms"},
                    **endpoint,
                }
            },
        }

    subnets = {"use1-az1": "subnet-0123456789abcdef0", "use1-az2": "subnet-0123456789abcdef1"}
    vpc = {"network": {"vpc_id": VPC, "subnets": subnets}}
    names = {"client_zones": {"names": ["us-east-1a", "us-east-1b"]}}
    measured = {"peak_tps": 1000, "tps_per_instance": 200}
    yield one()
    yield one({"client_zones": {"ids": [f"use1-az{number}" for number in range(1, 12)]}})
    yield one(names, throughput=measured)
    yield one({**names, "network": {"vpc_id": VPC}})
    yield one(vpc, throughput=measured)
    yield one(
        {
            **vpc,
            "private_link": {
                "interface_endpoint_id": "vpce-0123456789abcdef0",
                "security_group_id": "sg-0123456789abcdef0",
            },
        },
        warm_up={"payload": {"text": "x"}, "keep_warm": {}},
    )
    yield one(
        {"region": "eu-west-1", "client_zones": {"names": ["eu-west-1a", "eu-west-1b"]}},
        containers=[{"image": CPU}],
        warm_up={"payload": {"data": [1]}, "metrics": True},
    )
    yield one(
        containers=[{"image": GPU}],
        instance_type="ml.g5.xlarge",
        alarms={"gpu_utilization": 90, "model_latency": {"p99": "150ms"}},
    )
    yield one(
        containers=[
            {"image": {"uri": "a/b:1"}, "data": {"s3": "s3://my-bucket/many/"}, "multi_model": True}
        ],
        alarms={"cache_miss_rate": 0.05, "model_loading_wait": "1s"},
    )
    yield one(
        containers=[
            {"image": {"uri": "a/b:1"}, "hostname": "one"},
            {"image": {"ecr": {"repository": "team/two"}}, "hostname": "two"},
        ],
        inference_mode="Direct",
        deployment={"rolling": {}},
    )
    yield one(instance_type="ml.inf1.xlarge", deployment={"all_at_once": {}})
    yield one(instance_type="ml.t2.medium", scaling={"enabled": False})
    yield one(
        containers=[{"image": {"asset": "container"}, "data": {"asset": "model.tar.gz"}}],
        instance_type="ml.c7g.xlarge",
        warm_up={"payload": {"file": "payload.json", "content_type": "application/json"}},
    )
    yield one(
        {"private_link": {"hosted_zone_vpc_ids": ["vpc-0fedcba9876543210"], "sagemaker_api": True}},
        data_capture={"s3": "s3://my-bucket/c"},
    )
    yield one(
        throughput=measured,
        scaling={"metric": "concurrency", "concurrency_target": 4},
        routing={"prefix_aware": {"prefix_length": 1024, "concurrency_threshold": 8}},
    )
    yield one(
        throughput=measured,
        scaling={
            "schedule": [
                {"name": "morning", "cron": "45 7 ? * MON-FRI *", "min": 2, "max": 60},
                {"name": "launch", "at": "2030-01-01T00:00:00", "max": 50},
            ],
            "steps": {"adds": [{"requests": 8, "add": 2}, {"requests": 16, "add": 4}]},
        },
    )


def settings_values(random: Random) -> Any:
    """A case: settings that hold, with a few changes."""
    values = random.choice(bases())
    for _ in range(random.choice((0, 1, 1, 2, 3, 5, 8))):
        values = _changed(values, random)
    return values


def _changed(values: Any, random: Random) -> Any:
    change: Callable[[Any, Random], Any] = random.choice(
        (_add,) * 8 + (_replace,) * 3 + (_odd, _remove, _repeat, _rename)
    )
    return change(values, random)


def _add(values: Any, random: Random) -> Any:
    """A setting that the schema has and the file has not."""
    groups = [(node, group) for _, node, group in _nodes(values, SCHEMA) if isinstance(node, dict)]
    if not groups:
        return values
    node, group = random.choice(groups)
    missing = [name for name in group.get("properties", ()) if name not in node]
    if missing:
        name = random.choice(missing)
        node[name] = right_value(group["properties"][name], name, random)
    elif "patternProperties" in group or "additionalProperties" in group:
        name = random.choice(("environment", "tags", "endpoints"))
        below: dict[str, Any] = next(iter(group.get("patternProperties", {}).values()), {})
        node[random.choice(KEYS[name])] = right_value(below, name, random)
    return values


def _replace(values: Any, random: Random) -> Any:
    """Another right value in place of one."""
    place, _, group = random.choice(list(_nodes(values, SCHEMA)))
    return _put(values, place, right_value(group, _name(place), random))


def _odd(values: Any, random: Random) -> Any:
    place, node, _ = random.choice(list(_nodes(values, SCHEMA)))
    if isinstance(node, str) and random.random() < 0.4:
        at = random.randint(0, len(node))
        odd = random.choice(("${Token[TOKEN.12]}", "\x00", "\ud800", "٣", "/", " ", "A", "\n", "é"))
        return _put(values, place, node[:at] + odd + node[at:])
    return _put(values, place, copy.deepcopy(random.choice(ODD)))


def _remove(values: Any, random: Random) -> Any:
    place, _, _ = random.choice(list(_nodes(values, SCHEMA)))
    if place:
        parent = _at(values, place[:-1])
        del parent[place[-1]]
    return values


def _repeat(values: Any, random: Random) -> Any:
    """An entry of a list or a mapping once more, or many times."""
    several = [
        node
        for _, node, group in _nodes(values, SCHEMA)
        if node and (isinstance(node, list) or _is_free(node, group))
    ]
    if several:
        node = random.choice(several)
        for number in range(random.choice((1, 1, 2, 14, 40))):
            if isinstance(node, list):
                node.append(copy.deepcopy(random.choice(node)))
            else:
                key = random.choice(list(node))
                node[f"{key}-{number}"] = copy.deepcopy(node[key])
    return values


def _rename(values: Any, random: Random) -> Any:
    mappings = [
        node
        for _, node, group in _nodes(values, SCHEMA)
        if node and (_is_free(node, group) or (isinstance(node, dict) and random.random() < 0.1))
    ]
    if mappings:
        node = random.choice(mappings)
        key = random.choice(list(node))
        name = random.choice(random.choice(list(KEYS.values())))
        node[random.choice((name, f"{key}x", "${Token[TOKEN.3]}", "Network", "a\x00"))] = node.pop(
            key
        )
    return values


def _is_free(node: Any, group: dict[str, Any]) -> bool:
    """Whether it is a mapping whose keys are the user's choice."""
    return isinstance(node, dict) and not group.get("properties")


def right_value(group: dict[str, Any], name: str, random: Random) -> Any:
    """A value that the schema of one setting allows."""
    if "$ref" in group:
        return right_value(SCHEMA["$defs"][group["$ref"].removeprefix("#/$defs/")], name, random)
    for several in ("anyOf", "oneOf"):
        if several in group and "properties" not in group:
            return right_value(random.choice(group[several]), name, random)
    if "enum" in group:
        return random.choice(group["enum"])
    if "properties" in group or "patternProperties" in group:
        return _mapping(group, name, random)
    kind = group.get("type")
    if isinstance(kind, list):
        kind = random.choice(kind)
    if kind == "object":
        return {random.choice(KEYS.get(name, ("a",))): "1"}
    if kind == "array":
        return [
            right_value(group["items"], name, random) for _ in range(random.choice((0, 1, 2, 2, 3)))
        ]
    if kind == "boolean":
        return random.random() < 0.5
    if kind in ("integer", "number"):
        return _number(group, kind, random)
    if kind == "string":
        if r"(?:ms|s|m|h)$" in group.get("pattern", ""):
            return random.choice(DURATIONS)
        return random.choice(TEXTS.get(name, ("a", "B-1", "some text")))
    return copy.deepcopy(random.choice(({"inputs": "x"}, [1, 2.5], "x", 7, True)))


def _mapping(group: dict[str, Any], name: str, random: Random) -> dict[str, Any]:
    one_of = [each["required"][0] for each in group.get("oneOf", ())]
    wanted = {*group.get("required", ()), *([random.choice(one_of)] if one_of else ())}
    made = {
        key: right_value(below, key, random)
        for key, below in group.get("properties", {}).items()
        if key in wanted or (key not in one_of and random.random() < 0.2)
    }
    for below in group.get("patternProperties", {}).values():
        for _ in range(random.choice((0, 1, 1, 2))):
            made[random.choice(KEYS.get(name, ("a", "b")))] = right_value(below, name, random)
    return made


def _number(group: dict[str, Any], kind: str, random: Random) -> int | float:
    low, high = group.get("minimum", 0), group.get("maximum", 10**9)
    if kind == "integer":
        near = (low, low + 1, low + 2, 4, 16, 24, 60, 1000, high - 1, high)
        return int(random.choice([each for each in near if low <= each <= high]))
    numbers = (low, low * 1.5, 0.01, 0.5, 1, 1.5, 20, 90, 200, 1000, high / 2, high)
    return random.choice([each for each in numbers if low <= each <= high])


def _nodes(
    values: Any, group: dict[str, Any], place: Place = ()
) -> Iterator[tuple[Place, Any, dict[str, Any]]]:
    """Every value with its place and what the schema says of it."""
    if "$ref" in group:
        group = {**SCHEMA["$defs"][group["$ref"].removeprefix("#/$defs/")]}
    if "oneOf" in group and "properties" not in group and isinstance(values, dict):
        group = next((each for each in group["oneOf"] if "$ref" in each), {})
        yield from _nodes(values, group, place)
        return
    yield place, values, group
    if isinstance(values, dict):
        others: dict[str, Any] = next(iter(group.get("patternProperties", {}).values()), {})
        for key, value in values.items():
            yield from _nodes(value, group.get("properties", {}).get(key, others), (*place, key))
    elif isinstance(values, list):
        for index, value in enumerate(values):
            yield from _nodes(value, group.get("items", {}), (*place, index))


def _name(place: Place) -> str:
    return next((part for part in reversed(place) if isinstance(part, str)), "")


def _at(values: Any, place: Place) -> Any:
    for part in place:
        values = values[part]
    return values


def _put(values: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    _at(values, place[:-1])[place[-1]] = value
    return values
