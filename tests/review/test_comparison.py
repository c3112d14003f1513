"""Two settings files compared: whatever they hold, and the same file compared with itself."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
import yaml
from rich.console import Console

from low_latency_endpoint import DeploymentPolicy
from low_latency_endpoint.change.comparison import review
from low_latency_endpoint.change.deployment_words import policy_words
from low_latency_endpoint.change.effects import Effect
from low_latency_endpoint.change.revisions import is_file_name
from low_latency_endpoint.change.settings_differences import settings_differences, value_text
from low_latency_endpoint.cli.plan_changes import compared
from low_latency_endpoint.errors import SettingsError
from low_latency_endpoint.report.markdown import MOST_CHARACTERS, as_markdown
from low_latency_endpoint.report.terminal import drawn
from low_latency_endpoint.settings import Settings, load_settings, parse_settings
from low_latency_endpoint.settings.endpoint import container_id
from tools.fuzzing.agreement import folder_of_files, text_of
from tools.fuzzing.cases import settings_values

OF_ASSET = """
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  a:
    containers: [{image: {asset: image}}]
    instance_type: ml.m5.xlarge
"""
SHIPPED = Path(__file__).resolve().parents[2] / "endpoint.yaml"


@pytest.fixture(scope="module")
def made_up() -> Iterator[list[Settings]]:
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
        yield found


def test_any_two_files_can_be_compared_and_shown(made_up: list[Settings]) -> None:
    for before, after in pairwise(made_up):
        found = review(before, after)
        assert found.differences
        json.dumps(found.to_dict(), allow_nan=False)
        document = compared(found, "old.yaml", "new.yaml")
        assert len(as_markdown(document)) <= MOST_CHARACTERS
        out = io.StringIO()
        Console(width=80, file=out).print(*drawn(document))
        assert max(map(len, out.getvalue().splitlines())) <= 80


def test_a_file_has_no_difference_from_itself(made_up: list[Settings]) -> None:
    for settings in made_up:
        found = review(settings, settings)
        assert (found.differences, found.decisions, found.effect) == ((), [], Effect.NOTHING)
        assert not any(found.warnings.values())


def test_files_of_the_same_content_in_two_folders_are_the_same(tmp_path: Path) -> None:
    """Also where the folders of two revisions have it."""

    def read(name: str) -> Settings:
        path = tmp_path / name / "settings.yaml"
        path.write_text(OF_ASSET, encoding="utf-8")
        return load_settings(path)

    for name, content in (("one", "x"), ("two", "x"), ("three", "y")):
        (tmp_path / name / "image" / "below").mkdir(parents=True)
        (tmp_path / name / "image" / "Dockerfile").write_text("FROM busybox", encoding="utf-8")
        (tmp_path / name / "image" / "below" / "file").write_text(content, encoding="utf-8")
    one, two, three = (read(name) for name in ("one", "two", "three"))
    assert not list(settings_differences(one, two))
    assert [difference.name for difference in settings_differences(one, three)] == ["asset"]
    (tmp_path / "two" / "image" / "further").write_text("", encoding="utf-8")
    assert list(settings_differences(one, two))


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
    before, after = (parse_settings(text.format(more)) for more in ("", f", {stated}"))
    comparison = review(before, after)
    assert len(comparison.differences) == 1
    assert comparison.effect is Effect.IN_PLACE


def test_the_words_of_a_difference() -> None:
    assert value_text(("a", "b")) == "[a, b]"
    canary = DeploymentPolicy.canary(size_percent=20)
    assert policy_words(canary) == "a canary of 20 % for 5m, then all of it"
    assert container_id("mood", ("variants", "b", "containers", 0)) == "mood.b-0"


def test_what_is_a_file_and_no_revision() -> None:
    names = ("old.yaml", "./old", "/dev/stdin", "origin/main", "v1...")
    assert [is_file_name(each) for each in names] == [True, True, True, False, False]


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
    (gained,) = review(before, after).warnings["gained"]
    assert gained[1].startswith("second ")
    (lost,) = review(after, before).warnings["lost"]
    assert lost == gained
