"""Two settings files compared: whatever they hold, and the same file compared with itself."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import yaml
from rich.console import Console

from low_latency_endpoint import DeploymentPolicy
from low_latency_endpoint.cli.plan_changes import compared
from low_latency_endpoint.errors import SettingsError
from low_latency_endpoint.options.option import Effect, Options, Touched, groups_in, options_of
from low_latency_endpoint.plan.plan import ScalingPolicy
from low_latency_endpoint.report.markdown import MOST_CHARACTERS, as_markdown
from low_latency_endpoint.report.terminal import drawn
from low_latency_endpoint.settings import Settings, load_settings, parse_settings
from low_latency_endpoint.settings.endpoint import (
    EndpointSettings,
    ShadowSettings,
    VariantSettings,
    container_id,
)
from low_latency_endpoint.settings.update import endpoint_changes, endpoint_fields
from low_latency_endpoint.settings.update.comparison import compare, policy_words
from low_latency_endpoint.settings.update.endpoint_fields import (
    both_texts,
    differences,
    touched_at,
    value_text,
)
from low_latency_endpoint.settings.update.revisions import is_file_name
from tools.fuzzing.agreement import folder_of_files, text_of
from tools.fuzzing.cases import settings_values

SHIPPED = Path(__file__).resolve().parents[2] / "endpoint.yaml"


@pytest.fixture(scope="module")
def made_up() -> list[Settings]:
    """Thirty files that are accepted."""
    found = []
    with folder_of_files() as folder:
        path = folder / "settings.yaml"
        seed = 0
        while len(found) < 30:
            path.write_text(text_of(settings_values(Random(seed))), encoding="utf-8")
            seed += 1
            try:
                found.append(load_settings(path))
            except SettingsError:
                continue
    return found


def test_any_two_files_can_be_compared_and_shown(made_up: list[Settings]) -> None:
    for before, after in pairwise(made_up):
        found = compare(before, after)
        assert found.differences
        json.dumps(found.to_dict(), allow_nan=False)
        document = compared(found, "old.yaml", "new.yaml")
        assert len(as_markdown(document)) <= MOST_CHARACTERS
        out = io.StringIO()
        Console(width=80, file=out).print(*drawn(document))
        assert max(map(len, out.getvalue().splitlines())) <= 80


def test_a_file_has_no_difference_from_itself(made_up: list[Settings]) -> None:
    for settings in made_up:
        found = compare(settings, settings)
        assert (found.differences, found.decisions, found.effect) == ((), [], Effect.NOTHING)
        assert not any(found.warnings.values())


def test_files_of_the_same_content_in_two_folders_are_the_same(tmp_path: Path) -> None:
    paths = []
    for name, content in (("one", "x"), ("two", "x"), ("three", "y")):
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / name / "below" / "Dockerfile").write_text(content, encoding="utf-8")
        paths.append(tmp_path / name)
    one, two, three = paths
    assert not list(differences(one, two))
    assert not list(differences(one / "below" / "Dockerfile", two / "below" / "Dockerfile"))
    assert [each.before for each in differences(one, three)] == [one]
    (two / "further").write_text("", encoding="utf-8")
    assert list(differences(one, two))


@pytest.mark.parametrize(
    "stated",
    ["schedule: [{name: m, rate: 1 day, min: 3}]", "steps: {adds: [{requests: 8, add: 2}]}"],
)
def test_what_changes_the_scaling_of_a_further_variant_alone(stated: str) -> None:
    text = """client_zones: {{ids: [use1-az1, use1-az2]}}
endpoints:
  mood:
    instance_type: ml.m5.large
    containers: [{{image: {{uri: a/b:1}}}}]
    throughput: {{peak_tps: 1000, tps_per_instance: 50}}
    variants: {{b: {{scaling: {{scale_in_cooldown: 5m{}}}}}}}
"""
    before, after = (parse_settings(text.format(each)) for each in ("", f", {stated}"))
    [found] = compare(before, after).differences
    assert [each.effect for each in found.consequences] == [Effect.IN_PLACE]


def test_the_words_of_a_difference() -> None:
    assert both_texts({"min": 2, "max": 16}, {"min": 2, "max": 20}) == "max 16 -> 20"
    assert both_texts(8, None) == "8 -> none"
    assert value_text(("a", "b")) == "[a, b]"
    canary = DeploymentPolicy.canary(size_percent=20)
    assert policy_words(canary) == "a canary of 20 % for 5m, then all of it"
    assert container_id("mood", ("variants", "b", "containers", 0)) == "mood.b-0"


def test_what_is_a_file_and_no_revision() -> None:
    names = ("old.yaml", "./old", "/dev/stdin", "origin/main", "v1...")
    assert [is_file_name(each) for each in names] == [True, True, True, False, False]


SETTINGS = """
client_zones: {{ids: [use1-az1, use1-az2]}}
endpoints:
  a:
    containers: [{{image: {{uri: example/image:1}}}}]
    instance_type: ml.m5.xlarge
    latency: {{p99: {}}}
"""


def test_a_setting_without_a_stated_effect_is_not_said_to_do_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoint_changes, "touched_by", lambda stated: Touched())
    before, after = (parse_settings(SETTINGS.format(target)) for target in ("200ms", "300ms"))
    comparison = compare(before, after)
    [difference] = comparison.differences
    [consequence] = difference.consequences
    assert consequence.text == "no effect is stated for this setting: see cdk diff"
    assert comparison.outcomes["a"].effect is Effect.NOT_KNOWN


def settings_of(group: type[Options], place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The place of each setting that holds a value."""
    for each in options_of(group):
        below = groups_in(each.kind)
        if each.option is not None and below:
            yield from settings_of(below[0], (*place, each.name))
        elif each.option is not None:
            yield (*place, each.name)


@pytest.mark.parametrize("group", [EndpointSettings, VariantSettings, ShadowSettings])
def test_every_setting_states_its_effect(group: type[Options]) -> None:
    silent = [
        ".".join(place) for place in settings_of(group) if touched_at(place, group) == Touched()
    ]
    assert not silent, (
        "say in its Option what a change of it does: touches=Touched((CONFIGURATION,))"
    )


def test_what_a_policy_of_scaling_says_is_compared() -> None:
    """Whatever a field of it is called, a change of it is one of the policy."""
    policy = ScalingPolicy("Invocations", 100.0, 60, 300)
    for name in ScalingPolicy._fields:
        other = policy._replace(**{name: 7})
        first, second = (
            endpoint_fields._scaling(SimpleNamespace(scaling=each))  # type: ignore[arg-type]
            for each in (policy, other)
        )
        assert first != second, name


def test_each_warning_that_a_later_file_has_more_of_is_gained() -> None:
    """Several have one ID: two peaks without a range of their own are two warnings."""

    def with_peaks(**peaks: tuple[float, str, str]) -> Settings:
        values = yaml.safe_load(SHIPPED.read_text("utf-8"))
        values["endpoints"]["sentiment"]["throughput"]["peaks"] = {
            name: {"tps": tps, "from": start, "to": end}
            for name, (tps, start, end) in peaks.items()
        }
        return parse_settings(yaml.safe_dump(values))

    night, first = (900, "22:00", "06:00"), (800, "23:00", "23:30")
    before = with_peaks(night=night, first=first)
    after = with_peaks(night=night, first=first, second=(850, "01:00", "01:30"))
    (gained,) = compare(before, after).warnings["gained"]
    assert gained[1].startswith("second ")
    (lost,) = compare(after, before).warnings["lost"]
    assert lost == gained
