"""Set times in a settings file: what is warned of, printed, compared, and what a day costs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from low_latency_endpoint.change.comparison import review
from low_latency_endpoint.change.file_review import FileReview
from low_latency_endpoint.cli.plan_changes import compared, reviewed
from low_latency_endpoint.plan.traffic_shapes import Shape
from low_latency_endpoint.report.markdown import as_markdown
from low_latency_endpoint.settings import (
    Settings,
    explain_variants,
    fleets_along,
    parse_settings,
    set_times_along,
)
from low_latency_endpoint.settings.variant_plans import plan_endpoint

LOAD = {"peak_tps": 800, "tps_per_instance": 100, "safety_factor": 0.6, "rise_tps_per_minute": 25}
NIGHT = {"name": "night", "cron": "0 22 * * ? *", "min": 2}
PEAKS = {"night": {"tps": 2000, "from": "22:00", "to": "06:00", "time_zone": "Europe/Berlin"}}


def settings_of(schedule: Any = (), **throughput: Any) -> Settings:
    """8 instances for the rise, 14 at the peak, 28 at most."""
    endpoint = {
        "endpoint_name": "e",
        "instance_type": "ml.m5.xlarge",
        "containers": [{"image": {"uri": "a/b:1"}}],
        "latency": {"p99": "200ms"},
        "throughput": LOAD | throughput,
    }
    if schedule:
        endpoint["scaling"] = {"schedule": [*schedule]}
    return parse_settings(
        yaml.safe_dump(
            {"client_zones": {"ids": ["use1-az1", "use1-az2"]}, "endpoints": {"e": endpoint}}
        )
    )


def told(settings: Settings) -> dict[str, str]:
    return {warning.id: str(warning) for warning in explain_variants(settings)["e"].warnings}


@pytest.mark.parametrize(
    ("schedule", "gained"),
    [
        ([NIGHT], {"minimum-below-rise", "minimum-not-restored"}),
        (
            [NIGHT, {"name": "morning", "cron": "30 7 * * ? *", "min": 5}],
            {"minimum-below-rise", "minimum-not-restored"},
        ),
        (
            [NIGHT | {"max": 4}],
            {
                "minimum-below-rise",
                "minimum-not-restored",
                "maximum-not-restored",
                "maximum-below-peak",
            },
        ),
        ([NIGHT, {"name": "morning", "cron": "30 6 * * ? *", "min": 8}], {"minimum-below-rise"}),
    ],
)
def test_a_schedule_switches_no_rule_off(schedule: list[Any], gained: set[str]) -> None:
    before, after = told(settings_of()), told(settings_of(schedule))
    assert after.keys() - before.keys() == gained
    assert before.keys() <= after.keys()
    assert after["minimum-below-rise"].startswith("night (from 22:00 UTC)")


def test_ranges_are_printed_by_name() -> None:
    plan = explain_variants(settings_of([NIGHT]))["e"]
    assert plan.summary[0].text == (
        "14 at first, then 8 to 28 as load changes; 14 at peak; night: 2 to 28 from 22:00 UTC"
    )
    derived = explain_variants(settings_of(peaks=PEAKS))["e"]
    assert derived.summary[0].text.endswith(
        "night: 34 to 68 from 21:51 Europe/Berlin; after-night: 8 to 28 from 06:00 Europe/Berlin"
    )
    assert {"peak_range_1", "scheduled_range_1", "scheduled_range_2"} <= {
        decision["name"] for decision in derived.to_dict()["decisions"]
    }


def test_a_review_marks_a_schedule_that_lowers_capacity() -> None:
    before, after = settings_of(), settings_of([NIGHT | {"max": 4}])
    comparison = review(before, after)
    assert comparison.outcomes["e"].text == (
        "it serves on with the instances that it has; "
        "the minimum falls from 8 to 2 by night (from 22:00 UTC); "
        "the maximum falls from 28 to 4 by night (from 22:00 UTC)"
    )
    pages = (
        compared(comparison, "before", "after"),
        reviewed([FileReview.of("a.yaml", comparison)], "main", "HEAD", [], []),
    )
    for page in pages:
        verdict = as_markdown(page).partition("\n\n")[2].partition("\n")[0]
        assert ":white_check_mark:" not in verdict
        assert ":large_orange_diamond:" in verdict
    assert not review(after, before).is_doubtful


def test_a_change_of_a_peak_is_a_change_of_set_times() -> None:
    comparison = review(settings_of(), settings_of(peaks=PEAKS))
    [difference] = comparison.differences
    assert difference.after == "{tps: 2000, from: 22:00, to: 06:00, time_zone: Europe/Berlin}"
    texts = [row.text for row in comparison.stack.rows]
    assert any("scalable target" in text and "ScheduledActions" in text for text in texts)


DAY = Shape("day", "half the peak before noon, then all of it", ((43_200, 0.5), (86_400, 1.0)))


def test_a_day_counts_with_its_set_times() -> None:
    """800 / 60 = 13.3 are needed after noon, 6.7 before it; at night at most 4."""
    night = {"name": "night", "cron": "0 22 * * ? *", "min": 2, "max": 4}
    morning = {"name": "morning", "cron": "0 6 * * ? *", "min": 8, "max": 28}
    settings = settings_of([night, morning])
    along = fleets_along(settings, DAY)["e"]
    assert along is not None
    assert (along.least, along.most) == (4, 14)
    assert along.mean == pytest.approx((8 * 4 + 6 * 8 + 10 * 14) / 24)
    assert list(set_times_along(settings, DAY)) == [
        "e: set times as in traffic that begins on Monday at 00:00 UTC (assumed)"
    ]


def test_set_times_without_a_time_of_day_are_left_out_and_said() -> None:
    settings = settings_of([{"name": "odd", "rate": "2 days", "min": 8, "max": 30}])
    assert list(set_times_along(settings, DAY)) == [
        "e: set times are left out, as they do not come each week at known times "
        "(odd: 8 to 30 every 2 days)"
    ]
    hours = Shape("hours", "an hour", ((3600, 1.0),))
    [text] = set_times_along(settings_of([NIGHT]), hours)
    assert text.startswith("e: set times are left out, as the traffic has no time of day")


def test_each_variant_has_its_share_of_the_other_peaks() -> None:
    """A quarter of 2000 on b, 500 / 60 = 8.3; 1500 / 60 = 25 on the first."""
    text = yaml.safe_dump(
        {
            "client_zones": {"ids": ["use1-az1", "use1-az2"]},
            "endpoints": {
                "e": {
                    "instance_type": "ml.m5.xlarge",
                    "containers": [{"image": {"uri": "a/b:1"}}],
                    "throughput": LOAD | {"peaks": PEAKS},
                    "variant_weight": 3,
                    "variants": {"b": {"weight": 1}},
                }
            },
        }
    )
    settings = parse_settings(text)
    first = plan_endpoint(settings, "e")
    assert [peak.at_peak for peak in first.peaks] == [25]
    labels = explain_variants(settings)
    assert labels["e/b"]["peak_range_1"].inputs["instances at peak"] == 9
    assert labels["e/b"]["scheduled_range_1"].inputs["name"] == "night"
