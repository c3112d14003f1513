"""A language model's tokens: what makes them late, from what its server tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from low_latency_endpoint.account import queries as reading_of_tokens
from low_latency_endpoint.account.alarms import AlarmReading, token_alarms
from low_latency_endpoint.account.metrics import Series
from low_latency_endpoint.account.queries import (
    FIRST_TOKEN,
    FULLEST,
    INTER_TOKEN,
    KV_CACHE,
    RUNNING,
    WAITING,
    TokenWindow,
    read_hosts,
    read_tokens,
)
from low_latency_endpoint.facts.container_metrics import (
    above,
    container_metric,
    fullest_query,
    percentile_query,
)
from low_latency_endpoint.operate.diagnose.diagnosis import split
from low_latency_endpoint.operate.diagnose.measurements import (
    Measurements,
    Threshold,
    VariantReading,
)
from low_latency_endpoint.operate.diagnose.reading import (
    alarm_thresholds,
    plan_facts,
    token_targets,
)
from low_latency_endpoint.operate.diagnose.tree import walk

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
    *, hosts: Mapping[str, Mapping[tuple[str, str], Series]] | None = None, **changed: Series
) -> Measurements:
    """Two busy instances whose tokens come in time, but for what is changed."""
    tokens = {
        "ttft": series(200),
        "itl": series(30),
        "waiting": series(0),
        "running": series(12),
        "cache": series(40),
        "requests": series(600),
    } | changed
    given = {
        (FIRST_TOKEN, "p95"): tokens["ttft"],
        (INTER_TOKEN, "p95"): tokens["itl"],
        (WAITING, FULLEST): tokens["waiting"],
        (RUNNING, FULLEST): tokens["running"],
        (KV_CACHE, FULLEST): tokens["cache"],
        ("Invocations", "Sum"): tokens["requests"],
        ("InvocationsPerInstance", "Sum"): series(300),
        ("ModelLatency", "SampleCount"): tokens["requests"],
        ("ModelLatency", "p99"): series(9_000),
        ("GPUUtilization", "Average"): series(98),
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


LATE, VERY_LATE, SLOWER = series(200, 900), series(200, 2_000), series(30, 80)
QUEUE, FULL, BATCH = series(0, 7), series(60, 99), series(100, 256)
ONE_MINUTE = Series({**series(200).points, START + 25 * MINUTE: 4_000.0})
OTHER_MINUTES = Series({t: 900.0 if n < 10 else 200.0 for n, t in enumerate(series(0).times)})


def _after_idle(value: float) -> Series:
    """Nothing in the first quarter of an hour."""
    return Series({t: 0.0 if n < 15 else value for n, t in enumerate(series(0).times)})


def _of_instances(metric: str, *slow: float) -> dict[str, dict[tuple[str, str], Series]]:
    """The same metric of each of some instances."""
    return {f"i-{n}": {(metric, "p95"): series(30, each)} for n, each in enumerate(slow, 1)}


def cause(findings: str, says: str = "", **given: Any) -> tuple[str, str, dict[str, Any]]:
    return findings, says, given


CAUSES = {
    "tokens in time, however busy the GPU is": cause(""),
    "a single slow minute": cause("", ttft=ONE_MINUTE),
    "requests wait as the cache is full": cause(
        "LLD137 high", "7 waiting & 99 % of the KV cache", ttft=VERY_LATE, waiting=QUEUE, cache=FULL
    ),
    "requests wait for a place as more arrive": cause(
        "LLD138 high",
        "30 requests a second, 10 while tokens came on time",
        ttft=VERY_LATE,
        waiting=QUEUE,
        running=BATCH,
        requests=series(600, 1_800),
    ),
    "requests wait for a place as answers became longer": cause(
        "LLD138 high", ttft=VERY_LATE, waiting=QUEUE, running=BATCH
    ),
    "late though nothing more runs": cause("LLD139 medium", ttft=LATE),
    "a server that is slow to take requests in is not full": cause(
        "LLD139 medium", "4 waiting", ttft=LATE, waiting=series(0, 4)
    ),
    "an idle time before is no smaller batch": cause(
        "LLD139 medium",
        ttft=LATE,
        waiting=series(0, 1),
        running=_after_idle(4.0),
        requests=_after_idle(600.0),
    ),
    "slow as more requests arrive": cause(
        "LLD140 high", itl=SLOWER, running=series(12, 60), requests=series(600, 1_500)
    ),
    # Slower tokens keep requests in flight for longer: more run, but no more arrive.
    "a larger batch of as many requests is no cause": cause(
        "LLD142 medium", itl=SLOWER, running=series(12, 32)
    ),
    "slow as the cache is full": cause("LLD141 medium", itl=SLOWER, cache=FULL),
    "slow tokens explain the late first ones of the same minutes": cause(
        "LLD142 medium", itl=SLOWER, ttft=LATE, waiting=series(0, 5)
    ),
    "late first tokens of other minutes have a cause of their own": cause(
        "LLD139 medium & LLD142 medium", itl=SLOWER, ttft=OTHER_MINUTES
    ),
    "one instance is late": cause(
        "LLD143 high",
        "instance i-2 & the others",
        ttft=series(40, 3_000),
        hosts=_of_instances(FIRST_TOKEN, 31, 5_000, 33),
    ),
    "one instance is slow": cause(
        "LLD143 high",
        "instance i-2 & the others",
        itl=series(40, 3_000),
        hosts=_of_instances(INTER_TOKEN, 31, 5_000, 33),
    ),
    "instances that are all slow are not one apart": cause(
        "LLD142 medium", itl=SLOWER, hosts=_of_instances(INTER_TOKEN, 80, 81, 82)
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_what_makes_tokens_late(name: str) -> None:
    findings, says, given = CAUSES[name]
    found = walk(measured(**given))
    assert " & ".join(sorted(f"{each.id} {each.confidence}" for each in found)) == findings
    words = " ".join(each.text for finding in found for each in finding.evidence)
    assert all(each in words for each in says.split(" & "))
    slow = (START + SLOW[0] * MINUTE, START + (SLOW[-1] + 1) * MINUTE)
    assert {each.span for each in found} <= {slow, (START, START + 10 * MINUTE)}


def test_where_levels_are_unknown_the_finding_is_less_certain() -> None:
    given = measured(ttft=LATE)
    (variant,) = given.variants
    left = {key: value for key, value in variant.series.items() if key[1] != FULLEST}
    (finding,) = walk(replace(given, variants=(replace(variant, series=left),)))
    assert (finding.id, finding.confidence) == ("LLD139", "low")


def test_the_table_has_rows_of_tokens_only_where_they_are_told() -> None:
    given = measured(ttft=LATE)
    (variant,) = given.variants
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
