"""A language model's tokens: what makes them late, from what its server tells."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from low_latency_endpoint.account.metrics import Series
from low_latency_endpoint.operate.diagnose import read_tokens as reading_of_tokens
from low_latency_endpoint.operate.diagnose.diagnosis import split
from low_latency_endpoint.operate.diagnose.findings import Finding
from low_latency_endpoint.operate.diagnose.measurements import (
    AlarmReading,
    Measurements,
    Threshold,
    VariantReading,
)
from low_latency_endpoint.operate.diagnose.read_fleet import alarm_thresholds, plan_facts
from low_latency_endpoint.operate.diagnose.read_tokens import (
    TokenWindow,
    read_hosts,
    read_tokens,
    token_alarms,
    token_targets,
)
from low_latency_endpoint.operate.diagnose.tokens import (
    FIRST_TOKEN,
    FULLEST,
    INTER_TOKEN,
    KV_CACHE,
    RUNNING,
    WAITING,
)
from low_latency_endpoint.operate.diagnose.tree import walk
from low_latency_endpoint.plan.container_metrics import (
    above,
    container_metric,
    fullest_query,
    percentile_query,
)

START = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MINUTES = 40
SLOW = range(20, 32)
TARGETS = {
    (FIRST_TOKEN, "p95"): Threshold(500.0, "the target"),
    (INTER_TOKEN, "p95"): Threshold(50.0, "the target"),
}


def series(normal: float, slow: float | None = None) -> Series:
    """One value a minute, another one while things are slow."""
    return Series(
        {
            START + n * MINUTE: slow if slow is not None and n in SLOW else normal
            for n in range(MINUTES)
        }
    )


def measured(
    *,
    ttft: Series | None = None,
    itl: Series | None = None,
    waiting: Series | None = None,
    running: Series | None = None,
    cache: Series | None = None,
    requests: Series | None = None,
    hosts: Mapping[str, Mapping[tuple[str, str], Series]] | None = None,
    gpu: float = 98.0,
) -> Measurements:
    given = {
        (FIRST_TOKEN, "p95"): ttft or series(200),
        (INTER_TOKEN, "p95"): itl or series(30),
        (WAITING, FULLEST): waiting or series(0),
        (RUNNING, FULLEST): running or series(12),
        (KV_CACHE, FULLEST): cache or series(40),
        ("Invocations", "Sum"): requests or series(600),
        ("InvocationsPerInstance", "Sum"): series(300),
        ("ModelLatency", "SampleCount"): requests or series(600),
        ("ModelLatency", "p99"): series(9_000),
        ("GPUUtilization", "Average"): series(gpu),
    }
    variant = VariantReading(
        "primary",
        "ml.g5.xlarge",
        current_instances=2,
        series=given,
        thresholds=TARGETS,
        hosts=hosts or {},
    )
    return Measurements(
        endpoint="chat",
        region="us-east-1",
        start=START,
        end=START + MINUTES * MINUTE,
        period=MINUTE,
        status="InService",
        variants=(variant,),
    )


def found(**given: Any) -> list[Finding]:
    return walk(measured(**given))


def only(**given: Any) -> Finding:
    (finding,) = found(**given)
    return finding


def words(finding: Finding) -> str:
    return " ".join(each.text for each in finding.evidence)


def test_tokens_in_time_are_no_finding_however_busy_the_gpu_is() -> None:
    assert found() == []


def test_a_single_slow_minute_is_none() -> None:
    late = Series({**series(200).points, START + 25 * MINUTE: 4_000.0})
    assert found(ttft=late) == []


def test_requests_wait_as_the_cache_is_full() -> None:
    finding = only(ttft=series(200, 2_000), waiting=series(0, 7), cache=series(60, 99))
    assert (finding.id, finding.confidence) == ("LLD137", "high")
    assert "7 waiting" in words(finding)
    assert "99 % of the KV cache" in words(finding)
    assert finding.span == (START + 20 * MINUTE, START + 32 * MINUTE)


def test_requests_wait_for_a_place_as_more_arrive() -> None:
    finding = only(
        ttft=series(200, 2_000),
        waiting=series(0, 7),
        running=series(200, 256),
        requests=series(600, 1_800),
    )
    assert finding.id == "LLD138"
    assert "30 requests a second, 10 while tokens came in time" in words(finding)


def test_requests_wait_for_a_place_as_answers_became_longer() -> None:
    finding = only(ttft=series(200, 2_000), waiting=series(0, 7), running=series(100, 256))
    assert finding.id == "LLD138"


def test_first_tokens_are_late_though_nothing_more_runs() -> None:
    finding = only(ttft=series(200, 900))
    assert (finding.id, finding.confidence) == ("LLD139", "medium")


def test_a_server_that_is_slow_to_take_requests_in_is_not_full() -> None:
    finding = only(ttft=series(200, 900), waiting=series(0, 4))
    assert finding.id == "LLD139"
    assert "4 waiting" in words(finding)


def test_an_idle_time_before_is_no_smaller_batch() -> None:
    idle = {START + n * MINUTE for n in range(15)}
    finding = only(
        ttft=series(200, 900),
        waiting=series(0, 1),
        running=Series({t: 0.0 if t in idle else 4.0 for t in series(0).times}),
        requests=Series({t: 0.0 if t in idle else 600.0 for t in series(0).times}),
    )
    assert finding.id == "LLD139"


def test_tokens_are_slow_as_more_requests_arrive() -> None:
    finding = only(itl=series(30, 80), running=series(12, 60), requests=series(600, 1_500))
    assert (finding.id, finding.confidence) == ("LLD140", "high")


def test_a_larger_batch_of_as_many_requests_is_no_cause() -> None:
    # Slower tokens keep requests in flight for longer: more run, but no more arrive.
    finding = only(itl=series(30, 80), running=series(12, 32))
    assert finding.id == "LLD142"


def test_tokens_are_slow_as_the_cache_is_full() -> None:
    assert only(itl=series(30, 80), cache=series(60, 99)).id == "LLD141"


def test_slow_tokens_explain_the_late_first_ones_of_the_same_minutes() -> None:
    findings = found(itl=series(30, 80), ttft=series(200, 900), waiting=series(0, 5))
    assert [each.id for each in findings] == ["LLD142"]


def test_late_first_tokens_of_other_minutes_have_a_cause_of_their_own() -> None:
    late = Series({time: 900.0 if n < 10 else 200.0 for n, time in enumerate(series(0).times)})
    assert {each.id for each in found(itl=series(30, 80), ttft=late)} == {"LLD139", "LLD142"}


@pytest.mark.parametrize(("metric", "given"), [(FIRST_TOKEN, "ttft"), (INTER_TOKEN, "itl")])
def test_one_instance_apart_is_named(metric: str, given: str) -> None:
    hosts = {
        "i-1": {(metric, "p95"): series(40, 41)},
        "i-2": {(metric, "p95"): series(40, 5_000)},
        "i-3": {(metric, "p95"): series(40, 43)},
    }
    finding = only(**{given: series(40, 3_000)}, hosts=hosts)
    assert finding.id == "LLD143"
    assert "instance i-2" in words(finding)
    assert "the others" in words(finding)


def test_instances_that_are_all_slow_are_not_one_apart() -> None:
    hosts = {f"i-{n}": {(INTER_TOKEN, "p95"): series(30, 80 + n)} for n in range(3)}
    assert only(itl=series(30, 80), hosts=hosts).id == "LLD142"


def test_where_levels_are_unknown_the_finding_is_less_certain() -> None:
    given = measured(ttft=series(200, 900))
    (variant,) = given.variants
    left = {key: value for key, value in variant.series.items() if key[1] != FULLEST}
    from dataclasses import replace

    (finding,) = walk(replace(given, variants=(replace(variant, series=left),)))
    assert (finding.id, finding.confidence) == ("LLD139", "low")


def test_the_table_has_rows_of_tokens_only_where_they_are_told() -> None:
    given = measured(ttft=series(200, 900))
    (variant,) = given.variants
    from dataclasses import replace

    told = {**variant.series, (FIRST_TOKEN, "p50"): series(120), (FIRST_TOKEN, "p99"): series(990)}
    with_tokens = replace(variant, series=told)
    rows = {each.part: each for each in split(given, with_tokens)}
    assert (rows["first token"].p50, rows["first token"].p99) == pytest.approx((120, 990))
    assert rows["first token"].limit == "p95 500 ms"
    assert "first token" not in {each.part for each in split(given, variant)}


# --- read ---------------------------------------------------------------------------------------


def alarm(query: str, **more: Any) -> dict[str, Any]:
    criteria = {"PromQLCriteria": {"Query": query}}
    return {"AlarmName": "a", "StateValue": "ALARM", "EvaluationCriteria": criteria, **more}


@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_alarms_on_tokens_say_what_they_watch(server: str) -> None:
    of = {"endpoint": "chat", "variant": "primary"}
    ttft, itl, cache = (
        container_metric(server, meaning)
        for meaning in ("time_to_first_token", "inter_token_latency", "kv_cache_use")
    )
    queries = [
        above(percentile_query(ttft, 0.95, **of), 0.5, least=("sum(x)", 20)),
        above(percentile_query(itl, 0.999, **of), 0.045),
        above(fullest_query(cache, **of), 0.95),
    ]
    read = list(token_alarms([alarm(query) for query in queries], "chat"))
    assert [(each.metric, each.statistic) for each in read] == [
        (FIRST_TOKEN, "p95"),
        (INTER_TOKEN, "p99.9"),
        (KV_CACHE, FULLEST),
    ]
    assert [each.threshold for each in read] == pytest.approx([500, 45, 95])
    assert [each.unit for each in read] == ["ms", "ms", ""]
    assert {each.variant for each in read} == {"primary"}
    limits = alarm_thresholds(tuple(read), "primary")
    assert set(limits) == {(FIRST_TOKEN, "p95"), (INTER_TOKEN, "p99.9")}


@pytest.mark.parametrize(
    "query",
    ["up > 0", 'max({"other", "aws.sagemaker.endpoint.name"="chat"}) > 1', "not promql ((", ""],
)
def test_alarms_on_anything_else_are_left_alone(query: str) -> None:
    assert list(token_alarms([alarm(query), {"AlarmName": "classic"}], "chat")) == []


def test_alarms_of_another_endpoint_are_left_alone() -> None:
    query = percentile_query(
        container_metric("vllm", "time_to_first_token"), 0.95, endpoint="other", variant="primary"
    )
    assert list(token_alarms([alarm(above(query, 0.5))], "chat")) == []


def test_the_tightest_alarm_counts() -> None:
    read = tuple(
        AlarmReading(f"a{limit}", FIRST_TOKEN, "p95", limit, "ms", "OK", variant="primary")
        for limit in (900.0, 400.0)
    )
    assert alarm_thresholds(read, "primary")[FIRST_TOKEN, "p95"].value == 400


def test_the_plan_tells_the_limits_of_tokens_in_seconds() -> None:
    decision = {
        "name": "alarm_time_to_first_token_p95",
        "value": 0.4,
        "inputs": {"measures": "time to first token", "percentile": "p95", "target in ms": 500.0},
    }
    facts = plan_facts("stack", {"decisions": [decision]})
    assert facts.thresholds == {(FIRST_TOKEN, "p95"): 400.0}


def test_targets_on_the_command_line_are_those_of_the_server() -> None:
    stated = token_targets({"ttft-p95": 500.0, "itl-p50": 40.0, "p99": 9_000.0})
    assert {key: each.value for key, each in stated.items()} == {
        (FIRST_TOKEN, "p95"): 500.0,
        (INTER_TOKEN, "p50"): 40.0,
    }


# ------------------------------------------------------------------------------- what is read


def test_a_moment_tells_of_the_minute_before_it_in_milliseconds(monkeypatch: Any) -> None:
    """What a query finds at 3:01 is of the minute that began at 3:00."""
    asked: list[tuple[str, datetime, datetime]] = []

    def found(account: object, query: str, start: datetime, end: datetime, step: timedelta) -> Any:
        asked.append((query, start, end))
        if "@resource.host.id" in query:
            return [({"@resource.host.id": f"i-{n}"}, {start: 0.1 * n}) for n in (1, 2)]
        if "kv_cache" in query:
            return [({}, {start: 0.5})]
        return [({}, {start: 0.25, end: 0.5})] if "inter_token" in query else []

    monkeypatch.setattr(reading_of_tokens, "query_range", found)
    window = TokenWindow("chat", "primary", "vllm", START, START + 2 * MINUTE, MINUTE)
    account: Any = None
    tokens = read_tokens(account, window, statistics=["p75", "p95"])
    assert set(tokens) == {
        *((INTER_TOKEN, each) for each in ("p50", "p75", "p90", "p95", "p99")),
        (KV_CACHE, FULLEST),  # the others found nothing
    }
    assert tokens[INTER_TOKEN, "p95"].points == {START: 250.0, START + MINUTE: 500.0}
    assert tokens[KV_CACHE, FULLEST].points == {START: 50.0}
    assert {(start, end) for _, start, end in asked} == {(START + MINUTE, START + 2 * MINUTE)}
    # A rate needs more than one reading of the container's metrics in its window.
    assert all(("[180s]" if "seconds" in query else "[60s]") in query for query, _, _ in asked)
    hosts = read_hosts(account, window)
    assert {host: each[INTER_TOKEN, "p95"].points for host, each in hosts.items()} == {
        "i-1": {START: 100.0},
        "i-2": {START: 200.0},
    }
