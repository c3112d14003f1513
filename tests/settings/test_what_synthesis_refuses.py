"""What only synthesis refused is refused with its line when the settings are read."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from low_latency_endpoint.settings import Settings, explain_variants, load_settings, parse_settings
from tests.settings.test_mistakes import SUBNETS, VPC, Lines, line_of, text_of
from tests.settings_files import problems

MEASURED = "{peak_tps: 100, tps_per_instance: 50}"
ADOPTED = "{interface_endpoint_id: vpce-0123456789abcdef0, security_group_id: sg-0123456789abcdef0}"
KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def image(text: str) -> Lines:
    return {"containers": f"[{{image: {text}}}]"}


ZONES = "{ids: [euc1-az1, euc1-az2]}"


@pytest.mark.parametrize(
    "key", ["Network", "PrivateLink", "EndpointServingCheck", "CDKMetadata", "constructor"]
)
def test_an_endpoint_named_like_a_part_of_the_stack(key: str) -> None:
    text = text_of({}, {}).replace("sentiment:", f"{key}:")
    assert problems(text) == [(line_of(text, key), "LLE381")]


@pytest.mark.parametrize(
    ("setting", "taken"),
    [
        ({"kms_key_arn": KEY}, "sentiment-Key"),
        (
            image(f"{{uri: a/b:1}}, data: {{asset: a.tar.gz, kms_key_arn: '{KEY}'}}"),
            "sentiment-0-DataKey",
        ),
        # How the CDK keeps a role of another account than the stack's.
        ({"role_arn": "arn:aws:iam::999999999999:role/foreign"}, "MutableRolesentiment-Role"),
    ],
)
def test_an_endpoint_named_like_what_another_one_brings_along(setting: Lines, taken: str) -> None:
    values = yaml.safe_load(text_of({}, setting))
    values["endpoints"][taken] = values["endpoints"]["sentiment"]
    text = yaml.safe_dump(values, sort_keys=False)
    assert problems(text) == [(line_of(text, taken), "LLE381")]


def test_a_region_without_a_known_registry() -> None:
    """No account of AWS's images is known for a Region that is yet to be named."""
    shared: Lines = {"region": "xx-north-1", "client_zones": "{names: [xx-north-1a, xx-north-1b]}"}
    dlc = "[{image: {dlc: {repository: pytorch-inference, tag: '1'}}}]"
    text = text_of(shared, {"containers": dlc})
    assert problems(text) == [(line_of(text, "containers"), "LLE328")]
    stated = dlc.replace("tag: '1'", "tag: '1', account: '123456789012'")
    assert isinstance(parse_settings(text_of(shared, {"containers": stated})), Settings)


def test_buckets_of_before_2018_are_left_in_us_east_1() -> None:
    capture: Lines = {"data_capture": "{s3: s3://My_Old.Bucket/captured}"}
    plan = explain_variants(parse_settings(text_of({}, capture)), "sentiment")["sentiment"]
    assert [warning for warning in plan.warnings if "My_Old.Bucket" in warning]
    text = text_of({"client_zones": ZONES}, capture)
    assert problems(text) == [(line_of(text, "data_capture"), "LLE387")]


EXISTING = f"{{vpc_id: {VPC}, subnets: {SUBNETS}}}"


@pytest.mark.parametrize("network", [None, EXISTING])
def test_a_fleet_that_no_subnet_holds(network: str | None) -> None:
    text = text_of({"network": network}, {"instances": "{max: 40000}", "throughput": MEASURED})
    assert problems(text) == [(line_of(text, "instances"), "LLE113")]


def test_fleets_that_no_two_subnets_of_a_vpc_hold() -> None:
    """Three times 16,000 instances, four addresses each in an update; a /16 has 65,536."""
    values = yaml.safe_load(
        text_of({"network": EXISTING}, {"instances": "{max: 16000}", "throughput": MEASURED})
    )
    values["endpoints"] = dict.fromkeys("abc", values["endpoints"]["sentiment"])
    text = yaml.dump(values, Dumper=WithoutAliases, sort_keys=False)
    assert problems(text) == [(line_of(text, "max"), "LLE157")]


class WithoutAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def test_keep_warm_through_one_name_sends_to_one_zone() -> None:
    """Ten requests a minute: 0.17 per second where the zones have no names, twice that with."""
    warm = "{payload: {text: a}, keep_warm: {requests_per_zone: 10, below_tps: 0.2}}"
    shared: Lines = {"network": f"{{vpc_id: {VPC}, subnets: {SUBNETS}}}", "private_link": ADOPTED}
    assert isinstance(parse_settings(text_of(shared, {"warm_up": warm})), Settings)


@pytest.mark.parametrize(
    ("settings", "code", "key"),
    [
        ({"containers": "[{image: {asset: built}}]"}, "LLE380", "containers"),
        ({"containers": "[{image: {asset: model.tar.gz}}]"}, "LLE380", "containers"),
        ({"containers": "[{image: {asset: container, file: Other}}]"}, "LLE380", "containers"),
        (
            {"containers": "[{image: {uri: a/b:1}, data: {asset: folder.tar.gz}}]"},
            "LLE327",
            "containers",
        ),
        ({"warm_up": "{payload: {file: built, content_type: text/csv}}"}, "LLE546", "warm_up"),
        ({"warm_up": "{payload: {file: large, content_type: text/csv}}"}, "LLE545", "warm_up"),
    ],
)
def test_files_are_what_they_should_be(
    tmp_path: Path, settings: Lines, code: str, key: str
) -> None:
    for folder in ("built", "container", "folder.tar.gz"):
        (tmp_path / folder).mkdir()
    (tmp_path / "container" / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "model.tar.gz").write_bytes(b"packed")
    with (tmp_path / "large").open("wb") as large:
        large.truncate(25 * 1024 * 1024 + 1)
    text = text_of({}, settings)
    (tmp_path / "endpoint.yaml").write_text(text)
    assert problems(tmp_path / "endpoint.yaml", load_settings) == [(line_of(text, key), code)]


def test_what_the_plan_refuses_comes_with_the_unknown_settings() -> None:
    text = text_of({}, {"colour": "blue", "alarms": "{capacity_at_maximum: true}"})
    assert problems(text) == [
        (line_of(text, "colour"), "LLE904"),
        (line_of(text, "alarms"), "LLE724"),
    ]


def test_an_objective_needs_a_threshold() -> None:
    """Stated, or that of the plan, which follows from a latency target."""
    asked: Lines = {"alarms": "{service_level_objective: 0.99}", "latency": None}
    text = text_of({}, asked)
    assert problems(text) == [(line_of(text, "alarms"), "LLE739")]
    stated = "{service_level_objective: 0.99, model_latency: {p99: 200ms}}"
    for other in ({"latency": "{p99: 200ms}"}, {"alarms": stated}):
        assert isinstance(parse_settings(text_of({}, {**asked, **other})), Settings)


@pytest.mark.parametrize(("region", "warned"), [("cn-north-1", True), ("us-east-1", False)])
def test_a_region_without_objectives_is_warned_of(region: str, warned: bool) -> None:
    zones = f"{{names: [{region}a, {region}b]}}"
    alarms: Lines = {"alarms": "{service_level_objective: 0.99, model_latency: {p99: 200ms}}"}
    settings = parse_settings(text_of({"region": region, "client_zones": zones}, alarms))
    warnings = explain_variants(settings, "sentiment")["sentiment"].warnings
    assert sum("no Application Signals in cn-north-1" in each for each in warnings) == warned


def test_an_alarm_on_the_balance_of_more_zones_than_cloudwatch_compares() -> None:
    """CloudWatch takes ten metrics in one alarm."""
    for zones in (10, 11):
        ids = ", ".join(f"new1-az{number}" for number in range(1, zones + 1))
        text = text_of({"client_zones": f"{{ids: [{ids}]}}"}, {"alarms": "{zone_imbalance: 2}"})
        if zones == 10:
            assert isinstance(parse_settings(text), Settings)
        else:
            assert problems(text) == [(line_of(text, "alarms"), "LLE389")]


def test_a_broken_endpoint_does_not_hide_what_the_plan_refuses_of_another() -> None:
    values = yaml.safe_load(text_of({}, {"alarms": "{capacity_at_maximum: true}"}))
    values["endpoints"]["broken"] = {**values["endpoints"]["sentiment"], "instance_type": 7}
    del values["endpoints"]["broken"]["alarms"]
    assert [code for _, code in problems(yaml.safe_dump(values, sort_keys=False))] == [
        "LLE724",
        "LLE405",
    ]
