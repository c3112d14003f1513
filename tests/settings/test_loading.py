"""Reading the file: lines, YAML's traps, durations, assets, and all mistakes at once."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.errors import SettingsError
from low_latency_endpoint.facts.durations import duration_of_text, duration_text
from low_latency_endpoint.settings import (
    fleet_with_addresses,
    load_settings,
    parse_settings,
    plan_endpoint,
    shared_resources,
    stack_cost,
)
from low_latency_endpoint.settings.loading import settings_of
from tests.refusals import refused
from tests.settings_files import mistakes, problems

REPOSITORY = Path(__file__).parents[2]
SHORT = """\
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  sentiment:
    containers:
      - image: {uri: example/image:1}
    instance_type: ml.m5.large
    latency: {p99: 200ms}
"""


def placed(text: str) -> list[tuple[int, str, str]]:
    return [(line, error.code, error.where) for line, error in mistakes(text)]


def test_the_shipped_file() -> None:
    settings = load_settings(REPOSITORY / "endpoint.yaml")
    plan = plan_endpoint(settings, "sentiment")
    # the seeds' load test: 1000 TPS wanted, 200 held by one ml.m5.12xlarge at saturation
    assert plan.fleet.at_peak == 12  # ceil(1000 / (200 * 0.45))
    assert plan.scaling
    assert plan.scaling.target == 5400  # 200 * 0.45 * 60
    assert settings.endpoints["sentiment"].latency.p99 == timedelta(milliseconds=200)
    [container] = settings.endpoints["sentiment"].containers
    assert container.data is not None
    assert "HF_MODEL_ID" not in container.environment, "an isolated VPC cannot reach the Hub"


def test_the_plan_follows_what_scaling_is_told() -> None:
    scaling = "    scaling: {metric: concurrency, concurrency_target: 3}\n"
    plan = plan_endpoint(parse_settings(LOADED + scaling), "sentiment")
    assert plan.scaling
    assert plan.scaling.metric.startswith("SageMakerVariantConcurrentRequests")
    assert plan.scaling.target == 3
    off = plan_endpoint(parse_settings(LOADED + "    scaling: {enabled: false}\n"), "sentiment")
    assert off.scaling is None
    assert off.fleet.maximum == 8


def test_the_plan_of_an_endpoint_that_is_not_there() -> None:
    with refused("LLE933", allowed="sentiment"):
        plan_endpoint(parse_settings(SHORT), "topics")


def test_all_mistakes_at_once_each_on_its_line() -> None:
    text = """\
client_zones:
  ids:
    - use1-az1
    - us-east-1b
regoin: us-east-1
endpoints:
  sentiment:
    containers:
      - image:
          uri: example/image:1
          ecr:
            repository: model
        environment:
          GOOD: text
          1BAD: text
    latency:
      p50: 300ms
      p99: 200
      p99.9: 1s
    deployment:
      canary: {size_percent: 60}
      maximum_execution: 10m
      termination_wait: 20m
"""
    place = "endpoints.sentiment"
    assert placed(text) == [
        (4, "LLE101", "client_zones.ids[1]"),
        (5, "LLE904", "regoin"),
        (7, "LLE905", f"{place}.instance_type"),
        (11, "LLE927", f"{place}.containers[0].image.ecr"),
        (15, "LLE306", f"{place}.containers[0].environment.1BAD"),
        (18, "LLE908", f"{place}.latency.p99"),
        (19, "LLE904", f"{place}.latency.p99.9"),
        (21, "LLE503", f"{place}.deployment.canary.size_percent"),
        (22, "LLE521", f"{place}.deployment.maximum_execution"),
    ]


def test_an_error_says_what_to_do() -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(
            SHORT.replace("latency: {p99: 200ms}", "latency: {p99: 200}").replace(
                "instance_type", "instanse_type"
            ),
            path="my.yaml",
        )
    text = str(caught.value)
    assert text.startswith("my.yaml: 3 problems\n")
    assert "Did you mean instance_type?" in text
    assert "Add instance_type, such as instance_type: ml.m5.12xlarge." in text
    assert "my.yaml:7: LLE908" in text
    assert "Write the unit: 200ms, 200s or 200m." in text


@pytest.mark.parametrize(
    ("written", "instead", "fix"),
    [
        ("latency: {p99: 200ms}", "latency: 50ms", "Write {p99: 50ms}."),
        ("instance_type: ml.m5.large", "instance_type: m5.large", "Write ml.m5.large."),
        ("instance_type: ml.m5.large", "instance_type: gpu", "Use an allowed value"),
        (
            *("", "    routing: prefix_aware\n"),
            "Write {prefix_aware: {prefix_length: 1024, concurrency_threshold: 16}}.",
        ),
        ("", "    routing: randon\n", "Did you mean random?"),
        ("", "    throughput: {peak_tps: 100}\n", "Not measured yet? Leave out throughput"),
        ("", "    instances: 4\n", "Write a mapping, such as {min: 2}."),
    ],
)
def test_an_error_names_the_form_that_was_meant(written: str, instead: str, fix: str) -> None:
    text = SHORT.replace(written, instead) if written else SHORT + instead
    assert text != SHORT
    [(_, error)] = mistakes(text)
    assert fix in error.fix


def test_an_image_and_data_as_plain_text_name_their_form() -> None:
    text = SHORT.replace("{uri: example/image:1}", "a.b/c:1\n        data: s3://b/m/")
    fixes = [error.fix for _, error in mistakes(text)]
    assert fixes == ["Write {uri: a.b/c:1}.", "Write {s3: s3://b/m/}."]


@pytest.mark.parametrize(
    ("given", "meant"), [("yes", "true"), ("on", "true"), ("no", "false"), ("off", "false")]
)
def test_yaml_1_1_booleans_are_refused_with_the_fix(given: str, meant: str) -> None:
    [(line, error)] = mistakes(SHORT + f"    ssm_access: {given}\n")
    assert (line, error.code, error.fix) == (8, "LLE906", f"Write {meant}.")


def test_text_stays_as_it_is_written() -> None:
    text = SHORT.replace(
        "- image: {uri: example/image:1}",
        """\
- image: {ecr: {repository: model, tag: 1.10}}
        environment: {COUNTRY: no, SWITCH: on, TIME: 1:30, OCTAL: 010, EXP: 1e3, EMPTY: ""}""",
    )
    [container] = parse_settings(text).endpoints["sentiment"].containers
    assert container.image.ecr is not None
    assert container.image.ecr.tag == "1.10"
    assert container.environment == {
        "COUNTRY": "no",
        "SWITCH": "on",
        "TIME": "1:30",
        "OCTAL": "010",
        "EXP": "1e3",
        "EMPTY": "",
    }


def test_keys_that_look_like_other_values_are_text() -> None:
    text = SHORT.replace("sentiment:", "no:")
    assert set(parse_settings(text).endpoints) == {"no"}
    assert set(parse_settings(SHORT + "tags: {2026: x, true: y}\n").tags) == {"2026", "true"}


def test_a_key_without_a_value_counts_as_left_out() -> None:
    settings = parse_settings(SHORT + "    scaling:\n      # enabled: false\nnetwork:\n")
    assert settings.endpoints["sentiment"].scaling.enabled is True
    assert settings.network.cidr == "10.0.0.0/16"


def test_anchors_and_merge_keys() -> None:
    text = (
        SHORT.replace("sentiment:", "sentiment: &base")
        + """\
  topics:
    <<: *base
    instance_type: ml.c5.large
    latency: {p99: 50}
"""
    )
    assert placed(text) == [(11, "LLE908", "endpoints.topics.latency.p99")]
    settings = parse_settings(text.replace("p99: 50}", "p99: 50ms}"))
    assert settings.endpoints["topics"].instance_type == "ml.c5.large"
    assert settings.endpoints["sentiment"].instance_type == "ml.m5.large"


def test_a_mistake_in_merged_lines_is_reported_where_it_is_written() -> None:
    text = (
        SHORT.replace("sentiment:", "sentiment: &base").replace("200ms", "200")
        + """\
  topics: {<<: *base, instance_type: m5}
"""
    )
    assert placed(text) == [
        (7, "LLE908", "endpoints.sentiment.latency.p99"),
        (7, "LLE908", "endpoints.topics.latency.p99"),
        (8, "LLE405", "endpoints.topics.instance_type"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("a: [1, 2\nb: 3\n", 2, "LLE902"),
        ("a: 1\n\tb: 2\n", 2, "LLE902"),
        ("a: 1\n---\na: 2\n", 2, "LLE902"),
        ("a: *nowhere\n", 1, "LLE902"),
        ("a: 1\nb: \x07\n", 2, "LLE902"),
        ("[" * 5000, 1, "LLE907"),
    ],
)
def test_broken_yaml(text: str, line: int, code: str) -> None:
    assert problems(text) == [(line, code)]


@pytest.mark.parametrize(
    ("addition", "line", "code"),
    [
        ("stack_name: A\nstack_name: B\n", 9, "LLE903"),
        ("    instance_type: ml.m5.large\n", 8, "LLE903"),
        ("? [a, b]\n: c\n", 8, "LLE907"),
        ("stack_name: !!python/name:os.system x\n", 8, "LLE907"),
        ("stack_name: !secret x\n", 8, "LLE907"),
        ("tags: &tags {again: *tags}\n", 8, "LLE907"),
        ("<<: 5\n", 8, "LLE907"),
    ],
)
def test_yaml_that_settings_have_no_use_for(addition: str, line: int, code: str) -> None:
    assert (line, code) in problems(SHORT + addition)


def test_aliases_of_aliases_do_not_explode() -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert [code for _, code in problems("\n".join(lines))] == ["LLE907"]


@pytest.mark.parametrize("content", ["", "# nothing yet\n", "---\n"])
def test_an_empty_file_lacks_what_is_required(content: str) -> None:
    assert placed(content) == [(1, "LLE905", "client_zones"), (1, "LLE905", "endpoints")]


@pytest.mark.parametrize("content", ["just text\n", "- a\n- b\n", "5\n"])
def test_a_file_that_is_no_mapping(content: str) -> None:
    assert placed(content) == [(1, "LLE906", "")]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"a: \xff\xfe")
    for path in (tmp_path / "nowhere.yaml", tmp_path, binary, "a\0b"):
        assert [code for _, code in problems(path, load_settings)] == ["LLE901"]


def test_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SHORT.replace("\n", "\r\n").encode())
    assert load_settings(path) == parse_settings(SHORT)


def test_assets_are_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "model.tar.gz").touch()
    path = tmp_path / "settings.yaml"
    text = SHORT.replace(
        "{uri: example/image:1}", "{uri: example/image:1}\n        data: {asset: model.tar.gz}"
    )
    path.write_text(text)
    [container] = load_settings(path).endpoints["sentiment"].containers
    assert container.data is not None
    assert container.data.asset == tmp_path / "model.tar.gz"
    path.write_text(text.replace("model.tar.gz", "other.tar.gz"))
    assert problems(path, load_settings) == [(6, "LLE911")]


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("200ms", timedelta(milliseconds=200)),
        ("1.5s", timedelta(seconds=1.5)),
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("0s", timedelta()),
    ],
)
def test_durations(text: str, duration: timedelta) -> None:
    assert duration_of_text(text) == duration
    assert duration_of_text(duration_text(duration)) == duration


def test_settings_are_frozen() -> None:
    settings = parse_settings(SHORT)
    with pytest.raises(FrozenInstanceError):
        settings.stack_name = "Other"


def test_settings_built_in_python_obey_the_same_rules() -> None:
    given: dict[str, Any] = {
        "client_zones": {"ids": ("use1-az1", "use1-az2")},
        "endpoints": {
            "a": {
                "containers": [{"image": {"uri": "a/b:1"}}],
                "instance_type": "ml.m5.large",
                "latency": {"p99": timedelta(seconds=1)},
            }
        },
    }
    settings, findings = settings_of(given)
    assert findings == []
    assert settings_of(settings) == (settings, [])
    assert replace(settings, stack_name="B").stack_name == "B"
    _, findings = settings_of({**given, "client_zones": {}})
    assert "LLE927" in [error.code for _, error in findings]


LOADED = SHORT + "    throughput: {peak_tps: 1000, tps_per_instance: 200, safety_factor: 0.65}\n"


@pytest.mark.parametrize("measured", ["", "    throughput: {peak_tps: 40, tps_per_instance: 20}\n"])
@pytest.mark.parametrize("enabled", ["", "    scaling: {enabled: false}\n"])
@pytest.mark.parametrize(
    "instances",
    [
        "",
        "    instances: {initial: 15}\n",
        "    instances: {min: 2, max: 20}\n",
        "    instances: {min: 2, initial: 5, max: 9}\n",
    ],
)
def test_quota_cost_and_words_count_the_same_instances(
    measured: str, enabled: str, instances: str
) -> None:
    """Where nothing scales, a maximum is a number that nothing reaches."""
    settings = parse_settings(SHORT + measured + enabled + instances)
    (cost,) = stack_cost(settings).endpoints.values()
    (quota,) = shared_resources(settings).quotas
    assert list(quota)[1:] == [cost.at_most, cost.in_an_update]
    plan = plan_endpoint(settings, "sentiment")
    assert cost.at_most == (plan.fleet.maximum if plan.scaling else plan.fleet.initial)
    assumed = f"the peak is held by {plan.fleet.initial} instances"
    assert (assumed in " ".join(map(str, plan.explanation.summary))) == (not measured)


def test_subnets_are_made_for_the_maximum_and_without_scaling_the_fixed_number() -> None:
    assert fleet_with_addresses(parse_settings(LOADED)) == 16
    fixed = LOADED + "    scaling: {enabled: false}\n"
    assert fleet_with_addresses(parse_settings(fixed)) == 8
    two = fixed + LOADED.split("endpoints:\n")[1].replace("sentiment", "ranking")
    assert fleet_with_addresses(parse_settings(two)) == 8 + 16
    # Twice eight instances with two addresses each, and 22 more, fit a /26; twice sixteen do not.
    network = "network: {subnet_prefix_length: 26}\n"
    parse_settings(fixed + network)
    assert placed(LOADED + network) == [(9, "LLE113", "network.subnet_prefix_length")]
