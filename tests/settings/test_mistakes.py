"""Every rule that a settings file can break: the code it gives and the line it names."""

from __future__ import annotations

import pytest

from low_latency_endpoint.errors import SettingsError
from low_latency_endpoint.settings import Settings, parse_settings

SHARED = {"client_zones": "{ids: [use1-az1, use1-az2]}"}
ENDPOINT = {
    "containers": "[{image: {uri: example/image:1}}]",
    "instance_type": "ml.m5.large",
    "latency": "{p99: 200ms}",
}
TWO = "[{image: {uri: example/one:1}%s}, {image: {uri: example/two:1}%s}]"
VPC = "vpc-0123456789abcdef0"
SUBNETS = "{use1-az1: subnet-0123456789abcdef0, use1-az2: subnet-0123456789abcdef1}"
KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


Case = tuple[dict[str, str | None], str, str]


def environment(*pairs: str) -> str:
    """Containers with these environment variables."""
    return f"[{{image: {{uri: a/b:1}}, environment: {{{', '.join(pairs)}}}}}]"


NIGHT = "{name: night, rate: 1 day, min: 3}"
LOAD = "{peak_tps: 1000, tps_per_instance: 200}"


CANARY = {"deployment": "{canary: {}}"}


def scheduled(*entries: str) -> dict[str, str | None]:
    """An endpoint that scales, with these scheduled actions."""
    listed = ", ".join(f"{{{each}}}" for each in entries)
    return {"throughput": LOAD, "scaling": f"{{schedule: [{listed}]}}"}


def stepped(adds: str, more: str = "") -> dict[str, str | None]:
    """An endpoint that scales, with these steps."""
    further = f", {more}" if more else ""
    return {"throughput": LOAD, "scaling": f"{{steps: {{adds: [{adds}]{further}}}}}"}


def text_of(shared: dict[str, str | None], endpoint: dict[str, str | None]) -> str:
    """A settings file with one setting per line; ``None`` leaves a line out."""
    lines = [f"{key}: {value}" for key, value in {**SHARED, **shared}.items() if value is not None]
    if "endpoints" not in shared:
        lines += ["endpoints:", "  sentiment:"]
        lines += [
            f"    {key}: {value}"
            for key, value in {**ENDPOINT, **endpoint}.items()
            if value is not None
        ]
    return "\n".join(lines) + "\n"


def line_of(text: str, key: str) -> int:
    """The line on which a key stands, from 1."""
    return next(
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip().startswith(f"{key}:")
    )


def problems(text: str) -> list[tuple[int, str]]:
    with pytest.raises(SettingsError) as caught:
        parse_settings(text)
    return [(line, error.code) for line, error in caught.value.problems]


GOOD_SHARED: list[dict[str, str | None]] = [
    {"stack_name": "A-2"},
    {"region": "us-east-1"},
    {"account": "123456789012"},
    {"account": '"012345678901"'},
    {"client_zones": "{names: [eu-west-1a, eu-west-1b]}", "region": "eu-west-1"},
    {"network": "{cidr: 10.1.0.0/20, subnet_prefix_length: 24, flow_logs: false}"},
    {"network": "{flow_logs: all}"},
    {"network": "{flow_logs: true}"},
    {"private_link": "{endpoint_policy: false}"},
    {"private_link": "{private_dns: false, narrow_policy: false, openai: true}"},
    {"private_link": "{private_dns: true, narrow_policy: true, sagemaker_api: true}"},
    {"network": f"{{vpc_id: {VPC}, subnets: {SUBNETS}}}"},
    {"network": f"{{vpc_id: {VPC}}}", "client_zones": "{names: [us-east-1a, us-east-1b]}"},
    {
        "network": f"{{vpc_id: {VPC}, subnets: {SUBNETS}}}",
        "private_link": "{interface_endpoint_id: vpce-0123456789abcdef0, "
        "security_group_id: sg-0123456789abcdef0}",
    },
    {
        "private_link": f"{{allow_cidrs: [10.0.0.0/8], hosted_zone_vpc_ids: [{VPC}], fips: true, "
        "bidirectional_streaming: true, sagemaker_api: true}"
    },
    {"parameters": "/low-latency"},
    {"alarm_topic_arn": "arn:aws:sns:us-east-1:123456789012:on-call"},
    {"tags": "{team: nlp, cost center: '42', stage: 1}"},
    {"prices": "{ml.m5.large: 0.5, ml.g5.xlarge: 2, interface_endpoint: 0}"},
]
GOOD_ENDPOINT: list[dict[str, str | None]] = [
    {"endpoint_name": "sentiment-2"},
    {
        "containers": "[{image: {dlc: {repository: huggingface-pytorch-inference, tag: 2.6.0-cpu, "
        "account: '763104351884'}}}]"
    },
    {"containers": "[{image: {ecr: {repository: team/model}}, data: {s3_prefix: s3://bkt/m/}}]"},
    {"containers": "[{image: {uri: a/b:1}, data: {s3: s3://bkt/models/}, multi_model: true}]"},
    {"containers": TWO % ("", ""), "inference_mode": "Serial"},
    {"containers": TWO % (", hostname: one", ", hostname: two"), "inference_mode": "Direct"},
    {"containers": "[{image: {uri: a/b:1}, environment: {WORKERS: 4, COUNTRY: no, EMPTY: ''}}]"},
    {"latency": "{p50: 40ms, p90: 100ms, p95: 150ms, p99: 0.2s, p99_9: 1s, average: 50ms}"},
    {"throughput": "{peak_tps: 1000, tps_per_instance: 200}"},
    {"throughput": "{peak_tps: 0.5, tps_per_instance: 1.5, safety_factor: 1}"},
    {"routing": "random"},
    {"routing": "{prefix_aware: {prefix_length: 1024, concurrency_threshold: 16}}"},
    {"instances": "{min: 2, initial: 4, max: 12}"},
    {"scaling": "{metric: concurrency, concurrency_target: 4, scale_in_cooldown: 5m}"},
    {"scaling": "{enabled: false}"},
    {
        "throughput": "{peak_tps: 1000, tps_per_instance: 200}",
        "scaling": "{schedule: [{name: a, cron: '0 8 ? * MON-FRI *', time_zone: Europe/Berlin, "
        "min: 4, max: 40}, {name: b, at: 2030-01-01T00:00:00, max: 30}, {name: c, rate: 12 hours, "
        "min: 3}], steps: {adds: [{requests: 8, add: 2}, {requests: 16.5, add: 4}], cooldown: 2m}}",
    },
    {
        "scaling": "{metric: concurrency, concurrency_target: 4, steps: {metric: invocations, "
        "adds: [{requests: 600, add: 1}], periods: 3}}"
    },
    {
        "data_capture": f"{{s3: s3://bkt/, capture: [output], kms_key_arn: {KEY}, "
        "csv_content_types: [text/csv], json_content_types: [application/json]}"
    },
    {"tags": "{team: nlp}"},
    {
        "containers": "[{image: {asset: examples, file: Serve.Dockerfile, platform: linux/arm64, "
        "build_args: {MODEL: distilbert, PORT: 8080}}}]",
        "instance_type": "ml.c7g.large",
    },
    {"instance_type": "ml.t2.medium", "throughput": "{peak_tps: 10, tps_per_instance: 10}"},
    {"instance_type": "ml.t2.medium"},
    {"startup_health_check_timeout": "60s", "model_data_download_timeout": "1h"},
    {"volume_size_gib": "512", "ssm_access": "true", "network_isolation": "true"},
    {"inference_ami": "al2023-ami-sagemaker-inference-gpu-4-1", "instance_type": "ml.g5.xlarge"},
    {
        "inference_ami": "{custom: al2099-ami-sagemaker-inference-gpu-9}",
        "instance_type": "ml.g5.xlarge",
    },
    {"core_dump": f"{{s3: s3://bucket/dumps/, kms_key_arn: {KEY}}}", "kms_key_arn": KEY},
    {"kms_key_arn": KEY, "kms_key_with_local_storage": "true", "instance_type": "ml.g5.xlarge"},
    {"data_capture": "{s3: s3://bucket/captured/, sampling_percentage: 10}"},
    {"dashboard": "false"},
    {
        "recommendation": "{instance_types: [ml.c6i.4xlarge], phases: [{users: 1, spawn_rate: 0, "
        "duration: 2m}, {users: 3, spawn_rate: 3, duration: 1h}]}"
    },
    {
        "recommendation": "{instance_types: [ml.c6i.4xlarge, ml.g5.xlarge], "
        "stairs: {steps: 5, users_per_step: 3, duration: 10m}}"
    },
    {
        "alarms": "{client_error_rate: 0.05, model_error_rate: 0.01, minimum_invocations: 0, "
        "slow_requests: {threshold: 1s, objective: 0.995}, cpu_utilization: 70, "
        "memory_utilization: 80, disk_utilization: 80, capacity_at_maximum: false, "
        "zone_imbalance: 1.5, expect_traffic: true, quiet_during_deployments: true}"
    },
    {
        "alarms": "{gpu_utilization: 90, gpu_memory_utilization: 95}",
        "instance_type": "ml.g5.xlarge",
    },
    {
        "alarms": "{cache_miss_rate: 0.1, model_loading_wait: 1s}",
        "containers": "[{image: {uri: a/b:1}, data: {s3: s3://bkt/many/}, multi_model: true}]",
    },
    {
        "warm_up": "{payload: {data: {inputs: hello}}, requests: 100, concurrency_per_zone: 2, "
        "last: 20, timeout: 5m, on_miss: warn, during_deployments: false, metrics: true, "
        "reserve_concurrency: false, keep_warm: {every: 2m, requests_per_zone: 2, "
        "below_tps: 5, window: 10m}}"
    },
    {"warm_up": "{payload: {text: '1,2,3', content_type: text/csv}}"},
    {"metrics": "{enhanced: true, detailed_observability: false, publish_frequency: 5m}"},
    {
        "deployment": "{canary: {size_percent: 10, wait: 5m}, termination_wait: 2m, "
        "maximum_execution: 1h, rollback_on_alarms: true}"
    },
    {"deployment": "{linear: {step_percent: 25, wait: 5m}, maximum_execution: 21m}"},
    {"deployment": "{all_at_once: {}}"},
    {"deployment": "{rolling: {batch_percent: 50, wait: 0s}}"},
    {"deployment": "{all_at_once: {}}", "instance_type": "ml.inf1.xlarge"},
    {
        "alarms": "{model_latency: {p99: 200ms, p99.9: 1s, Average: 50ms}, "
        "overhead_latency: {Average: 20ms}, error_rate: 0.01}"
    },
]


@pytest.mark.parametrize("shared", GOOD_SHARED, ids=str)
def test_good_shared_settings(shared: dict[str, str | None]) -> None:
    assert isinstance(parse_settings(text_of(shared, {})), Settings)


@pytest.mark.parametrize("endpoint", GOOD_ENDPOINT, ids=str)
def test_good_endpoint_settings(endpoint: dict[str, str | None]) -> None:
    assert set(parse_settings(text_of({}, endpoint)).endpoints) == {"sentiment"}


# setting -> value -> (code, key on whose line it is reported); one mistake each
BAD_SHARED: list[Case] = [
    ({"prices": "{ml.m5.large: -0.1}"}, "LLE883", "prices"),
    ({"prices": "{ml.m5.large: $0.5}"}, "LLE883", "prices"),
    # limits of planning keep their own codes
    ({"client_zones": "{ids: [use1-az1]}"}, "LLE103", "client_zones"),
    ({"client_zones": "{ids: []}"}, "LLE103", "client_zones"),
    ({"network": "{cidr: 10.0.0.0/8}"}, "LLE104", "network"),
    ({"network": "{subnet_prefix_length: 28}"}, "LLE113", "network"),
    ({"client_zones": "{ids: [use1-az1, use1-az1]}"}, "LLE107", "client_zones"),
    ({"client_zones": "{ids: [use1-az1, euw1-az1]}"}, "LLE110", "client_zones"),
    (
        {"region": "eu-west-1", "client_zones": "{names: [us-east-1a, eu-west-1a]}"},
        "LLE110",
        "client_zones",
    ),
    ({"network": "{cidr: 10.0.0.1/16}"}, "LLE111", "network"),
    ({"network": "{cidr: somewhere}"}, "LLE111", "network"),
    ({"network": "{cidr: 10.0.0.0/24, subnet_prefix_length: 24}"}, "LLE112", "network"),
    (
        {"network": f"{{vpc_id: {VPC}, subnets: {{use1-az1: subnet-0123456789abcdef0}}}}"},
        "LLE153",
        "network",
    ),
    (
        {
            "network": f"{{vpc_id: {VPC}, subnets: {SUBNETS}}}",
            "client_zones": "{ids: [use1-az1, use1-az4]}",
        },
        "LLE153",
        "network",
    ),
    # the file's own rules
    ({"netwrok": "{}"}, "LLE904", "netwrok"),
    ({"client_zones": None}, "LLE905", "the file"),
    ({"client_zones": ""}, "LLE905", "client_zones"),
    ({"endpoints": None}, "LLE905", "the file"),
    ({"endpoints": "[]"}, "LLE906", "endpoints"),
    ({"network": "true"}, "LLE906", "network"),
    ({"network": "{flow_logs: yes}"}, "LLE906", "network"),
    ({"network": "{flow_logs: [all]}"}, "LLE906", "network"),
    ({"private_link": "{fips: true, endpoint_policy: true}"}, "LLE213", "private_link"),
    ({"private_link": "{fips: true, narrow_policy: false}"}, "LLE218", "private_link"),
    ({"private_link": "{endpoint_policy: false, narrow_policy: true}"}, "LLE218", "private_link"),
    ({"private_link": "{sagemaker_api: true, private_dns: false}"}, "LLE220", "private_link"),
    ({"private_link": "{fips: 'true'}"}, "LLE906", "private_link"),
    ({"private_link": "{allow_cidrs: [10.0.0.0]}"}, "LLE910", "private_link"),
    ({"private_link": "{allow_cidrs: [10.0.0.1/8]}"}, "LLE910", "private_link"),
    ({"client_zones": "{}"}, "LLE927", "client_zones"),
    (
        {"client_zones": "{ids: [use1-az1, use1-az2], names: [us-east-1a, us-east-1b]}"},
        "LLE927",
        "client_zones",
    ),
    ({"network": f"{{vpc_id: {VPC}}}"}, "LLE928", "network"),
    ({"network": f"{{subnets: {SUBNETS}}}"}, "LLE928", "network"),
    (
        {
            "network": f"{{vpc_id: {VPC}, subnets: {{use1-az1: subnet-0123456789abcdef0, "
            "use1-az2: subnet-0123456789abcdef0}}"
        },
        "LLE159",
        "network",
    ),
    ({"private_link": "{security_group_id: sg-0123456789abcdef0}"}, "LLE928", "private_link"),
    (
        {
            "network": f"{{vpc_id: {VPC}, subnets: {SUBNETS}}}",
            "private_link": "{interface_endpoint_id: vpce-0123456789abcdef0}",
        },
        "LLE928",
        "private_link",
    ),
    (
        {
            "private_link": "{interface_endpoint_id: vpce-0123456789abcdef0, "
            "security_group_id: sg-0123456789abcdef0}"
        },
        "LLE928",
        "private_link",
    ),
    ({"network": f"{{vpc_id: {VPC}, subnets: {SUBNETS}, cidr: 10.0.0.0/16}}"}, "LLE929", "network"),
    ({"network": f"{{vpc_id: {VPC}, subnets: {SUBNETS}, flow_logs: false}}"}, "LLE929", "network"),
    (
        {
            "network": f"{{vpc_id: {VPC}, subnets: {SUBNETS}}}",
            "private_link": "{interface_endpoint_id: vpce-0123456789abcdef0, security_group_id: sg-0123456789abcdef0, "
            "fips: true}",
        },
        "LLE929",
        "private_link",
    ),
    (
        {
            "network": f"{{vpc_id: {VPC}, subnets: {SUBNETS}}}",
            "private_link": "{interface_endpoint_id: vpce-0123456789abcdef0, security_group_id: sg-0123456789abcdef0, "
            "sagemaker_api: true}",
        },
        "LLE929",
        "private_link",
    ),
    *(
        (
            {
                "network": f"{{vpc_id: {VPC}, subnets: {SUBNETS}}}",
                "private_link": "{interface_endpoint_id: vpce-0123456789abcdef0, "
                f"security_group_id: sg-0123456789abcdef0, {stated}}}",
            },
            "LLE929",
            "private_link",
        )
        for stated in ("private_dns: false", "narrow_policy: true", "openai: true")
    ),
    (
        {
            "network": f"{{vpc_id: {VPC}, subnets: {SUBNETS}}}",
            "private_link": "{interface_endpoint_id: vpce-0123456789abcdef0, security_group_id: sg-0123456789abcdef0, "
            "hosted_zone_vpc_ids: [vpc-0fedcba9876543210]}",
        },
        "LLE929",
        "private_link",
    ),
    ({"endpoints": "{}"}, "LLE930", "endpoints"),
]
BAD_ENDPOINT: list[Case] = [
    ({"containers": "[]"}, "LLE301", "containers"),
    (
        {"containers": environment(*(f"K{number}: v" for number in range(101)))},
        "LLE305",
        "containers",
    ),
    ({"containers": environment("A: " + "v" * 1025)}, "LLE307", "containers"),
    (
        {"containers": environment(*(f"K{number}: {'v' * 1000}" for number in range(33)))},
        "LLE308",
        "containers",
    ),
    (
        {"containers": TWO % (", hostname: a", ""), "inference_mode": "Serial"},
        "LLE321",
        "containers",
    ),
    (
        {"containers": TWO % (", hostname: a", ", hostname: a"), "inference_mode": "Serial"},
        "LLE322",
        "containers",
    ),
    (
        {"containers": TWO % (", hostname: a", ""), "inference_mode": "Direct"},
        "LLE323",
        "containers",
    ),
    ({"inference_mode": "Serial"}, "LLE324", "inference_mode"),
    (
        {"containers": "[{image: {uri: a/b:1}, data: {s3_prefix: s3://bkt/m}}]"},
        "LLE325",
        "containers",
    ),
    ({"containers": "[{image: {uri: a/b:1}, multi_model: true}]"}, "LLE326", "containers"),
    ({"containers": "[{image: {uri: a/b:1}, model_cache: false}]"}, "LLE372", "containers"),
    (
        {
            "containers": "[{image: {uri: a/b:1}, data: {s3: s3://bkt/models/}, multi_model: true, "
            "model_package: fraud}]"
        },
        "LLE371",
        "containers",
    ),
    (
        {
            "containers": "[{image: {uri: a/b:1, credentials_function_arn: "
            "'arn:aws:lambda:us-east-1:123456789012:function:login'}}]"
        },
        "LLE928",
        "containers",
    ),
    (
        {"containers": "[{image: {ecr: {repository: a/b}, private_registry: true}}]"},
        "LLE928",
        "containers",
    ),
    (
        {
            "containers": "[{image: {uri: a/b:1}, multi_model: true, data: {s3_prefix: s3://bkt/m/}}]"
        },
        "LLE326",
        "containers",
    ),
    ({"containers": "[{image: {uri: a/b:1}, data: {asset: model.zip}}]"}, "LLE327", "containers"),
    ({"containers": "[{image: {uri: a/b:1}, data: {s3: s3://bkt/m/}}]"}, "LLE329", "containers"),
    ({"inference_ami": "al1"}, "LLE409", "inference_ami"),
    ({"inference_ami": "{version: al1}"}, "LLE409", "inference_ami"),
    ({"inference_ami": "{custom: 'AL 1'}"}, "LLE935", "inference_ami"),
    ({"data_capture": "{s3: s3://bkt/, capture: []}"}, "LLE428", "data_capture"),
    ({"data_capture": "{s3: s3://bkt/, capture: [Input]}"}, "LLE909", "data_capture"),
    ({"data_capture": "{s3: s3://bkt/, capture: input}"}, "LLE906", "data_capture"),
    (
        {
            "data_capture": f"{{s3: s3://bkt/, csv_content_types: "
            f"[{', '.join(f'a/b{n}' for n in range(11))}]}}"
        },
        "LLE430",
        "data_capture",
    ),
    ({"tags": f"{{{', '.join(f'k{n}: v' for n in range(51))}}}"}, "LLE509", "tags"),
    ({"containers": "[{image: {uri: a/b:1, platform: linux/arm64}}]"}, "LLE928", "containers"),
    (
        {
            "containers": "[{image: {uri: a/b:1}, data: {s3: s3://bkt/m/, accept_eula: true}, "
            "multi_model: true}]"
        },
        "LLE318",
        "containers",
    ),
    (
        {"containers": "[{image: {uri: a/b:1}, data: {asset: m.tar.gz, accept_eula: true}}]"},
        "LLE318",
        "containers",
    ),
    ({"warm_up": "{payload: {data: 1, text: a}}"}, "LLE927", "warm_up"),
    ({"warm_up": "{payload: {file: nothing.json}}"}, "LLE928", "warm_up"),
    (
        {"recommendation": "{phases: [{users: 1, spawn_rate: 3, duration: 10m}]}"},
        "LLE928",
        "recommendation",
    ),
    (
        {"recommendation": "{instance_types: [ml.g5.xlarge], phases: []}"},
        "LLE928",
        "recommendation",
    ),
    (
        {
            "recommendation": "{instance_types: [ml.g5.xlarge], phases: [{users: 1, spawn_rate: 3, "
            "duration: 10m}], stairs: {steps: 1, users_per_step: 1, duration: 10m}}"
        },
        "LLE929",
        "recommendation",
    ),
    ({"recommendation": "{instance_types: []}"}, "LLR104", "recommendation"),
    (
        {"recommendation": "{instance_types: [ml.g5.xlarge, ml.g5.xlarge]}"},
        "LLR104",
        "recommendation",
    ),
    ({"kms_key_arn": KEY, "instance_type": "ml.g5.xlarge"}, "LLE424", "kms_key_arn"),
    (
        {"deployment": "{canary: {wait: 8m}, termination_wait: 2m, maximum_execution: 10m}"},
        "LLE521",
        "deployment",
    ),
    ({"deployment": "{linear: {}, maximum_execution: 20m}"}, "LLE521", "deployment"),
    ({"deployment": "{linear: {step_percent: 10, wait: 1h}}"}, "LLE521", "deployment"),
    ({"deployment": "{rolling: {batch_percent: 5, wait: 1h}}"}, "LLE521", "deployment"),
    (
        {
            "containers": "[{image: {asset: examples}}]",
            "inference_ami": "al2-ami-sagemaker-inference-neuron-2",
        },
        "LLE338",
        "inference_ami",
    ),
    ({"deployment": "{canary: {}}", "instance_type": "ml.inf1.xlarge"}, "LLE523", "deployment"),
    ({"scaling": "{metric: concurrency, concurrency_target: 1.0e+200}"}, "LLE602", "scaling"),
    (
        {"scaling": "{enabled: false, metric: concurrency, concurrency_target: 3}"},
        "LLE629",
        "scaling",
    ),
    ({"scaling": "{enabled: false, scale_in_cooldown: 5m}"}, "LLE629", "scaling"),
    ({"scaling": f"{{enabled: false, schedule: [{NIGHT}]}}"}, "LLE629", "scaling"),
    ({"scaling": "{enabled: false, steps: {adds: [{requests: 8, add: 2}]}}"}, "LLE629", "scaling"),
    ({"scaling": f"{{schedule: [{NIGHT}]}}"}, "LLE634", "scaling"),
    ({"scaling": "{steps: {adds: [{requests: 8, add: 2}]}}"}, "LLE634", "scaling"),
    (scheduled("name: a, rate: 0 days, min: 3"), "LLE612", "scaling"),
    (scheduled("name: a, cron: 0 8 * * MON-FRI, min: 3"), "LLE612", "scaling"),
    (scheduled("name: a, at: tomorrow, min: 3"), "LLE612", "scaling"),
    (scheduled("name: a, rate: 1 day, time_zone: Europe/Berlin, min: 3"), "LLE613", "scaling"),
    (scheduled("name: a, at: 2030-01-01T00:00:00, time_zone: Mars, min: 3"), "LLE613", "scaling"),
    (scheduled("name: a, rate: 1 day"), "LLE627", "scaling"),
    (scheduled("name: a, rate: 1 day, min: 9, max: 8"), "LLE621", "scaling"),
    (scheduled("name: a, rate: 1 day, min: 900"), "LLE621", "scaling"),
    (scheduled("name: a, rate: 1 day, max: 1"), "LLE621", "scaling"),
    (scheduled(NIGHT[1:-1], NIGHT[1:-1]), "LLE626", "scaling"),
    (scheduled("name: Invocations, rate: 1 day, min: 3"), "LLE626", "scaling"),
    (scheduled("name: Steps, rate: 1 day, min: 3"), "LLE626", "scaling"),
    (scheduled("name: a, min: 3"), "LLE927", "scaling"),
    (scheduled("name: a, rate: 1 day, at: 2030-01-01T00:00:00, min: 3"), "LLE927", "scaling"),
    (stepped("{requests: 8, add: 2}, {requests: 16, add: 2}"), "LLE628", "scaling"),
    (stepped("{requests: 8, add: 1}, {requests: 8, add: 2}"), "LLE628", "scaling"),
    (stepped(""), "LLE628", "scaling"),
    (stepped("{requests: 8, add: 1}", "metric: latency"), "LLE909", "scaling"),
    ({"scaling": "{keep_counts: false}"}, "LLE512", "scaling"),
    ({"scaling": "{enabled: true, keep_counts: false}"}, "LLE512", "scaling"),
    ({"instances": "{min: 4, max: 3}"}, "LLE621", "instances"),
    (
        {
            "instance_type": "ml.t2.medium",
            "instances": "{min: 2, max: 3}",
            "throughput": "{peak_tps: 1, tps_per_instance: 1}",
        },
        "LLE624",
        "instance_type",
    ),
    ({"instances": "{min: 4, initial: 3}"}, "LLE625", "instances"),
    ({"instances": "{initial: 9, max: 8}"}, "LLE625", "instances"),
    ({"alarms": "{model_latency: {average: 1s}}"}, "LLE731", "alarms"),
    ({"alarms": "{overhead_latency: {p99: 1s}}"}, "LLE732", "alarms"),
    ({"latency": "{}"}, "LLE802", "latency"),
    ({"latency": "{p50: 1s, p99: 200ms}"}, "LLE803", "latency"),
    # the file's own rules
    ({"instance": "ml.m5.large"}, "LLE904", "instance"),
    ({"instance_type": None}, "LLE905", "sentiment"),
    ({"containers": "[{image: {dlc: {repository: a}}}]"}, "LLE905", "containers"),
    ({"containers": "{image: {uri: a/b:1}}"}, "LLE906", "containers"),
    ({"containers": "[a/b:1]"}, "LLE906", "containers"),
    ({"network_isolation": "on"}, "LLE906", "network_isolation"),
    ({"containers": environment("DEBUG: true")}, "LLE906", "containers"),
    ({"containers": "[{image: {uri: a/b:1}, environment: [A, B]}]"}, "LLE906", "containers"),
    ({"latency": "{p99: 200}"}, "LLE908", "latency"),
    ({"latency": "{p99: '200'}"}, "LLE908", "latency"),
    ({"latency": "{p99: 200 ms}"}, "LLE908", "latency"),
    ({"latency": "{p99: -5ms}"}, "LLE908", "latency"),
    ({"latency": "{p99: true}"}, "LLE908", "latency"),
    ({"startup_health_check_timeout": "1:30"}, "LLE908", "startup_health_check_timeout"),
    ({"startup_health_check_timeout": f"{'9' * 400}h"}, "LLE908", "startup_health_check_timeout"),
    ({"routing": "fastest"}, "LLE909", "routing"),
    ({"scaling": "{metric: cpu}"}, "LLE909", "scaling"),
    ({"containers": "[{image: {}}]"}, "LLE927", "containers"),
    ({"containers": "[{image: {uri: a/b:1, ecr: {repository: c}}}]"}, "LLE927", "containers"),
    ({"containers": "[{image: {uri: a/b:1}, data: {}}]"}, "LLE927", "containers"),
    ({"deployment": "{}"}, "LLE927", "deployment"),
    ({"deployment": "{canary: {}, all_at_once: {}}"}, "LLE927", "deployment"),
    ({"containers": TWO % ("", "")}, "LLE928", "containers"),
    ({"scaling": "{metric: concurrency}"}, "LLE928", "scaling"),
    ({"scaling": "{concurrency_target: 4}"}, "LLE929", "scaling"),
    (
        {"scaling": "{metric: concurrency, concurrency_target: 4, invocations_target: 500}"},
        "LLE929",
        "scaling",
    ),
    ({"scaling": "{enabled: false, invocations_target: 500}"}, "LLE629", "scaling"),
    ({"instance_pools": "[]"}, "LLE413", "instance_pools"),
    (
        {
            "instance_type": "ml.m5.large",
            "instance_pools": "[{instance_type: ml.m5.large, priority: 1}, "
            "{instance_type: ml.m6i.large, priority: 1}]",
        },
        "LLE425",
        "instance_pools",
    ),
    (
        {
            "instance_type": "ml.m5.large",
            "throughput": "{peak_tps: 10, tps_per_instance: 5}",
            "instance_pools": "[{instance_type: ml.m5.large, priority: 1, tps_per_instance: 5}, "
            "{instance_type: ml.m6i.large, priority: 2}]",
        },
        "LLE432",
        "instance_pools",
    ),
    ({"variants": "{primary: {}}"}, "LLE421", "variants"),
    ({"variants": "{b: {weight: 0}}", "variant_weight": "0"}, "LLE426", "variant_weight"),
    ({"variants": "{b: {}}", "shadow": "{name: c}"}, "LLE431", "shadow"),
    ({"shadow": "{name: primary}"}, "LLE421", "shadow"),
    ({"shadow": "{share: 1}"}, "LLE905", "shadow"),
    ({"variants": "{b: {tps_per_instance: 5}}"}, "LLE434", "variants"),
    ({"throughput": LOAD, "variants": "{b: {scaling: {keep_counts: true}}}"}, "LLE435", "variants"),
    ({"variants": "{b: {inference_mode: Serial}}"}, "LLE324", "variants"),
    ({"variants": "{b: {instances: {min: 3, max: 2}}}"}, "LLE621", "variants"),
    ({"variants": "{b: {instance_type: ml.g5.xlarge}}", "kms_key_arn": KEY}, "LLE424", "variants"),
    (
        {"variants": "{b: {}}", "deployment": "{rolling: {batch_percent: 20}}"},
        "LLE522",
        "deployment",
    ),
    ({"variants": "{b: {instance_type: ml.inf1.xlarge}}", **CANARY}, "LLE523", "deployment"),
    (
        {"latency": "{p50: 50ms, p90: 90ms, p95: 100ms, p99: 200ms}", "variants": "{b: {}, c: {}}"},
        "LLE508",
        "variants",
    ),
    ({"deployment": "{rolling: {}, termination_wait: 2m}"}, "LLE929", "deployment"),
    ({"data_capture": "{s3: s3://bkt/, sampling_percentage: 0}"}, "LLE932", "data_capture"),
]


@pytest.mark.parametrize(
    ("shared", "code", "key"), BAD_SHARED, ids=[f"{code}-{key}" for _, code, key in BAD_SHARED]
)
def test_bad_shared_settings(shared: dict[str, str | None], code: str, key: str) -> None:
    text = text_of(shared, {})
    line = 1 if key == "the file" else line_of(text, key)
    assert problems(text) == [(line, code)]


@pytest.mark.parametrize(
    ("endpoint", "code", "key"),
    BAD_ENDPOINT,
    ids=[f"{code}-{key}" for _, code, key in BAD_ENDPOINT],
)
def test_bad_endpoint_settings(endpoint: dict[str, str | None], code: str, key: str) -> None:
    text = text_of({}, endpoint)
    assert problems(text) == [(line_of(text, key), code)]


def test_a_bad_endpoint_key() -> None:
    text = text_of({}, {}).replace("sentiment:", "senti_ment:")
    assert problems(text) == [(3, "LLE915")]


def test_the_same_endpoint_name_twice() -> None:
    endpoint = (
        "{containers: [{image: {uri: a/b:1}}], instance_type: ml.m5.large, "
        "latency: {p99: 1s}, endpoint_name: same}"
    )
    text = f"client_zones: {SHARED['client_zones']}\nendpoints:\n  a: {endpoint}\n  b: {endpoint}\n"
    assert problems(text) == [(4, "LLE931")]


def test_what_only_the_plan_refuses_has_its_line_too() -> None:
    """A GPU image on a CPU type breaks a planning rule, not a limit of one setting."""
    gpu = "{dlc: {repository: pytorch-inference, tag: 2.6.0-gpu-py312-cu124-ubuntu22.04}}"
    text = text_of({}, {"containers": f"[{{image: {gpu}}}]"})
    [(line, code)] = problems(text)
    assert code.startswith("LLE33")
    assert line == line_of(text, "containers")


def test_one_instance_is_not_refused() -> None:
    one = parse_settings(text_of({}, {"instances": "{min: 1, max: 1}"}))
    [endpoint] = one.endpoints.values()
    assert (endpoint.instances.min, endpoint.instances.max) == (1, 1)
