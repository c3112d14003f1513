"""What `compare-routing` compares, by the settings file's keys."""

from __future__ import annotations

from pathlib import Path

from low_latency_endpoint.cli.chosen_endpoints import stated_sides

FILE = """\
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  mood: &mood
    containers: [{image: {uri: example/image:1}}]
    instance_type: ml.m5.xlarge
    endpoint_name: mood-at-aws
  tone: {<<: *mood, endpoint_name: tone-at-aws}
"""


def test_both_keys_become_the_names_at_aws(tmp_path: Path) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text(FILE, encoding="utf-8")
    names = ["mood-at-aws", "tone-at-aws"]
    assert stated_sides(["mood", "tone"], path, None, None) == (names, "mood")
    assert stated_sides(["mood", "another"], path, None, None)[0] == ["mood-at-aws", "another"]
    assert stated_sides(["mood", "tone"], None, None, None)[0] == ["mood", "tone"]
