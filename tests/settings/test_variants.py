"""Variants beside the first in a settings file: what each asks of the plan, and what counts them."""

from __future__ import annotations

import re
from contextlib import chdir
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.cli.chosen_endpoints import stated_name
from low_latency_endpoint.settings import (
    explain_variants,
    fleet_with_addresses,
    fleets_along,
    parse_settings,
    planned_variants,
    shared_resources,
    stack_cost,
)
from low_latency_endpoint.simulate import shape

FILE = """\
client_zones: {ids: [use1-az1, use1-az2]}
prices: {ml.m5.xlarge: 1, ml.c5.xlarge: 2, interface_endpoint: 0.01}
endpoints:
  mood:
    containers: [{image: {uri: example/image:1}}]
    instance_type: ml.m5.xlarge
    latency: {p99: 200ms}
    throughput: {peak_tps: 1000, tps_per_instance: 100}
    instances: {min: 4, max: 40}
"""
TESTED = FILE + (
    "    variant_weight: 9\n"
    "    variants: {b: {instance_type: ml.c5.xlarge, tps_per_instance: 40, instances: {max: 7}}}\n"
)
SHADOWED = FILE + "    shadow: {name: b, share: 0.5, instances: {max: 12}}\n"


def plans(text: str):
    return {each.variant: each for each in planned_variants(parse_settings(text))}


def test_each_variant_is_planned_for_its_part() -> None:
    found = plans(TESTED)
    # 900 TPS at 50 each; 100 at 20, no more than 7 of them.
    assert {name: each.plan.fleet.serving_at_peak for name, each in found.items()} == {
        "primary": 18,
        "b": 5,
    }
    assert [each.plan.fleet.maximum for each in found.values()] == [40, 7]
    assert [each.label for each in found.values()] == ["mood", "mood/b"]


def test_a_shadow_is_planned_for_what_is_copied() -> None:
    found = plans(SHADOWED)
    assert [each.plan.fleet.at_peak for each in found.values()] == [20, 10]
    assert [each.shadow for each in found.values()] == [False, True]


OWN_MODELS = ("", "containers: [{image: {uri: example/image:2}}]")
TYPES = (
    "",
    "instance_type: ml.m5.xlarge",
    "instance_type: ml.c5.xlarge",
)  # the second: as the first
THROUGHPUTS = ("", "tps_per_instance: 40")
SHARES = ("weight: 1", "weight: 0", "shadow")


@pytest.mark.parametrize(
    ("model", "runs_on", "throughput", "share"),
    list(product(OWN_MODELS, TYPES, THROUGHPUTS, SHARES)),
)
def test_a_throughput_of_another_model_or_type_warns(
    model: str, runs_on: str, throughput: str, share: str
) -> None:
    shadow = share == "shadow"
    own = ", ".join(filter(None, [model, runs_on, throughput, "share: 1" if shadow else share]))
    further = f"shadow: {{name: b, {own}}}" if shadow else f"variants: {{b: {{{own}}}}}"
    ids = {each.id for each in plans(f"{FILE}    {further}\n")["b"].plan.explanation.warnings}
    differs = bool(model) or "c5" in runs_on
    # Of a variant that gets no requests no throughput is assumed.
    expected = differs and not throughput and share != "weight: 0"
    said = ids & {"throughput-of-another-type", "throughput-of-another-model"}
    assert len(said) == expected


def test_whatever_counts_instances_counts_all_of_them() -> None:
    settings = parse_settings(TESTED)
    assert fleet_with_addresses(settings) == 47
    quotas = {each.instance_type: each for each in shared_resources(settings).quotas}
    assert (quotas["ml.m5.xlarge"].at_most, quotas["ml.m5.xlarge"].in_an_update) == (40, 80)
    assert (quotas["ml.c5.xlarge"].at_most, quotas["ml.c5.xlarge"].in_an_update) == (7, 14)
    assert shared_resources(settings).connections == 200  # of the endpoint, not of each variant


def test_the_cost_is_that_of_all_variants() -> None:
    cost = stack_cost(parse_settings(TESTED))
    beside = sum(each.usd or 0 for each in cost.items)
    assert cost.usd("at_most") == pytest.approx(40 * 1 + 7 * 2 + beside, abs=0.001)
    assert set(cost.endpoints) == {"mood", "mood/b"}


def test_copies_are_no_requests_that_are_paid_for_twice() -> None:
    settings = parse_settings(SHADOWED)
    fleets = fleets_along(settings, shape("daily-wave"))
    alone = fleets_along(parse_settings(FILE), shape("daily-wave"))["mood"]
    assert fleets["mood/b"].tps == 0
    assert sum(each.tps for each in fleets.values()) == alone.tps
    assert fleets["mood/b"].mean > 0


def test_the_plan_prints_each_variant_and_its_share() -> None:
    found = explain_variants(parse_settings(TESTED))
    assert {label: each["share_of_requests"].value for label, each in found.items()} == {
        "mood": 90,
        "mood/b": 10,
    }
    assert explain_variants(parse_settings(SHADOWED))["mood/b"]["copied_requests"].value == 50


def test_an_endpoint_without_variants_is_explained_as_before() -> None:
    (only,) = explain_variants(parse_settings(FILE)).values()
    assert "share_of_requests" not in only


@pytest.fixture
def tested(tmp_path: Path) -> Path:
    path = tmp_path / "endpoint.yaml"
    path.write_text(TESTED, encoding="utf-8")
    return path


def test_the_command_prints_them_below_the_endpoint(tested: Path) -> None:
    said = CliRunner().invoke(app, ["plan", "--settings", str(tested)]).output
    assert said.index("mood  ml.m5.xlarge") < said.index("mood/b  ml.c5.xlarge")


def test_what_looks_at_one_variant_says_so(tested: Path) -> None:
    answer = CliRunner().invoke(app, ["simulate", "--settings", str(tested)])
    assert answer.exception.code == "LLE438"


def test_a_comparison_needs_one_endpoint_of_the_file(tmp_path: Path) -> None:
    """How many variants that has says AWS: ``LLT118`` of test_compare_routing.py."""
    path = tmp_path / "endpoint.yaml"
    path.write_text(FILE + FILE[FILE.index("  mood") :].replace("mood", "topics"), "utf-8")
    arguments = ["compare-routing", "--users", "2", "--payload", "{}"]
    with chdir(tmp_path):  # without an endpoint: the endpoint.yaml of the folder
        for more in ([], ["--settings", str(path)]):
            answer = CliRunner().invoke(app, [*arguments, *more])
            assert answer.exception.code == "LLT111"


def test_without_an_endpoint_its_payload_is_the_settings_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = "    endpoint_name: scores\n    warm_up: {payload: {data: {inputs: a}}}\n"
    (tmp_path / "endpoint.yaml").write_text(f"region: us-east-1\n{TESTED}{payload}", "utf-8")
    asked = []
    monkeypatch.setattr(
        "low_latency_endpoint.load_test.compare.compare_routing.compare_routing",
        lambda *given, **named: asked.append((given[0], given[1].bodies, named["variants"])),
    )
    with chdir(tmp_path):
        CliRunner().invoke(app, ["compare-routing", "--users", "2"])
    assert asked == [(["scores"], (b'{"inputs":"a"}',), ())]


def test_of_several_endpoints_none_is_taken_unasked(tmp_path: Path) -> None:
    """One with variants is what a comparison means; a load test, or a diagnosis, may mean any."""
    path = tmp_path / "endpoint.yaml"
    path.write_text(TESTED + FILE[FILE.index("  mood") :].replace("mood", "topics"), "utf-8")
    for command in (["load-test", "--tps", "1", "--payload", "{}"], ["diagnose"]):
        answer = CliRunner().invoke(app, [*command, "--settings", str(path)])
        assert answer.exception.code == "LLT111", command


SEVERAL = TESTED + FILE[FILE.index("  mood") :].replace("mood", "topics")


@pytest.mark.parametrize(
    "command", ["load-test --tps 1", "diagnose", "compare-routing --users 2 --payload {}"]
)
def test_what_names_one_of_several_is_printed_and_works(tmp_path: Path, command: str) -> None:
    """Typed with the other options, it goes on to what is asked for next, with the file's region."""
    several = SEVERAL if "routing" not in command else FILE + SEVERAL[SEVERAL.index("  topics") :]
    (tmp_path / "endpoint.yaml").write_text(several, "utf-8")
    with chdir(tmp_path):
        said = CliRunner().invoke(app, command.split()).exception
        printed = re.search(r"`(.*?)`", said.fix)
        assert printed is not None
        again = CliRunner().invoke(app, [*command.split(), *printed[1].split()])
    assert said.code == "LLT111"
    assert printed[1].endswith("--settings endpoint.yaml")
    assert getattr(again.exception, "code", "") != "LLT111"


def test_a_named_endpoint_without_a_payload_is_told_of_the_folders_file(tmp_path: Path) -> None:
    (tmp_path / "endpoint.yaml").write_text(SEVERAL, "utf-8")
    for folder, told in ((tmp_path, True), (tmp_path / "empty", False)):
        folder.mkdir(exist_ok=True)
        with chdir(folder):
            answer = CliRunner().invoke(app, ["load-test", "topics", "--tps", "1"])
        assert answer.exception.code == "LLT109"
        assert ("--settings endpoint.yaml" in answer.exception.fix) is told


def test_the_region_is_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text(f"region: us-east-1\n{FILE}    endpoint_name: scores\n", "utf-8")
    assert stated_name(path, None, None) == ("scores", "us-east-1")
    assert stated_name(path, None, None, "mood") == ("scores", "us-east-1")
