"""Instance pools of a settings file: planned for the slowest, counted for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from low_latency_endpoint.cli.prices import PriceOptions, _region_and_types
from low_latency_endpoint.errors import SettingsError
from low_latency_endpoint.settings import parse_settings, plan_endpoint, shared_resources

FILE = """
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  sentiment:
    containers: [{image: {uri: a/b:1}}]
    instance_type: %s
    throughput: {peak_tps: 1000, tps_per_instance: %s, safety_factor: 0.5}
    instance_pools:
      - {instance_type: ml.g6.xlarge, priority: 1, tps_per_instance: 400}
      - {instance_type: ml.g5.xlarge, priority: 2, tps_per_instance: 200}
"""


def test_the_plan_is_made_for_the_slowest_pool():
    plan = plan_endpoint(parse_settings(FILE % ("ml.g5.xlarge", 200)), "sentiment")
    assert plan.fleet.at_peak == 10  # 1000 / (200 x 0.5)
    assert "slowest" in str(plan.explanation.to_dict())


def test_every_type_needs_a_quota_for_the_whole_fleet():
    shared = shared_resources(parse_settings(FILE % ("ml.g5.xlarge", 200)))
    by_type = {each.instance_type: each.at_most for each in shared.quotas}
    assert set(by_type) == {"ml.g5.xlarge", "ml.g6.xlarge"}
    assert len(set(by_type.values())) == 1


@pytest.mark.parametrize(("stated", "tps"), [("ml.g6.xlarge", 400), ("ml.g5.xlarge", 400)])
def test_another_type_or_throughput_than_the_slowest_is_refused(stated, tps):
    with pytest.raises(SettingsError, match="LLE433"):
        parse_settings(FILE % (stated, tps))


def test_prices_are_read_for_each_pool(tmp_path: Path) -> None:
    file = tmp_path / "endpoint.yaml"
    file.write_text(FILE % ("ml.g5.xlarge", 200), encoding="utf-8")
    _, types = _region_and_types(file, PriceOptions())
    assert set(types) == {"ml.g5.xlarge", "ml.g6.xlarge"}
