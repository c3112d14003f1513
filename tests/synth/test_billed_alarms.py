"""The alarms that the cost counts are those of the template, metric by metric."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from fuzzing.agreement import counted, synthesised, text_of
from fuzzing.cases import bases
from low_latency_endpoint.settings import load_settings, plan_endpoint, planned_variants
from low_latency_endpoint.settings.stack_parts import billed_alarms

ALL_ALARMS = {
    "client_error_rate": 0.05,
    "model_error_rate": 0.01,
    "slow_requests": {"threshold": "200ms"},
    "zone_imbalance": 1.5,
    "expect_traffic": True,
    "anomalies": {"Invocations": "Sum"},
    "period": "5m",
    "quiet_during_deployments": True,
}


def metrics_of(resource: dict[str, Any]) -> int:
    """Metrics that CloudWatch bills an alarm for: those read, not the expression over them.

    But for a band that CloudWatch learns, each edge of which counts.
    """
    metrics = resource["Properties"].get("Metrics", ())
    bands = sum("ANOMALY_DETECTION_BAND" in each.get("Expression", "") for each in metrics)
    return sum("MetricStat" in each for each in metrics) + 2 * bands or 1


def cases() -> list[dict[str, Any]]:
    shipped, *others = bases()[:3]
    watchful, fixed = bases()[0], bases()[0]
    for endpoint in watchful["endpoints"].values():
        endpoint["alarms"] = {**endpoint.get("alarms", {}), **ALL_ALARMS}
        endpoint["deployment"] = {"rolling": {"batch_percent": 20}, "rollback_on_alarms": True}
    for endpoint in fixed["endpoints"].values():
        endpoint["scaling"] = {"enabled": False}
        endpoint["alarms"] = {"model_latency": {"p50": "100ms", "p99": "200ms"}}
    stepped = [copy.deepcopy(bases()[0]) for _ in range(2)]
    for values, metric in zip(stepped, ("concurrency", "invocations"), strict=True):
        for endpoint in values["endpoints"].values():
            steps = {"metric": metric, "adds": [{"requests": 900, "add": 2}]}
            endpoint["scaling"] = {**endpoint.get("scaling", {}), "steps": steps}
    tested, shadowed = copy.deepcopy(watchful), copy.deepcopy(bases()[0])
    for endpoint in tested["endpoints"].values():
        endpoint["deployment"] = {"canary": {"size_percent": 10, "wait": "5m"}}
        endpoint["variants"] = {"b": {"routing": "random"}, "c": {"scaling": {"enabled": False}}}
        endpoint["alarms"]["quiet_during_deployments"] = True
        endpoint["alarms"].pop("capacity_at_maximum", None)
    for endpoint in shadowed["endpoints"].values():
        endpoint["shadow"] = {"name": "b", "containers": copy.deepcopy(endpoint["containers"])}
    hub = copy.deepcopy(shipped)
    for endpoint in hub["endpoints"].values():
        del endpoint["containers"]
        endpoint["hugging_face"] = {"model": "BAAI/bge-small-en-v1.5"}
        other = {"model": "BAAI/bge-small-en-v1.5", "bucket": "our-models"}
        endpoint["shadow"] = {"name": "b", "hugging_face": other}
    return [hub, shipped, *others, watchful, fixed, *stepped, tested, shadowed, *of_tokens()]


def of_tokens() -> list[dict[str, Any]]:
    """Language models: the plan's alarms on tokens, stated ones, and those of several variants."""
    vllm, sglang = (
        [{"image": {"dlc": {"repository": name, "tag": "0.30.0-cpu"}}}]
        for name in ("vllm", "sglang")
    )
    own = [{"image": {"uri": "registry.example.com/scorer:1"}}]
    every = {"ttft": {"p99": "1s", "p50": "100ms"}, "waiting_requests": 2, "kv_cache_use": 0.9}
    changes: list[dict[str, Any]] = [
        {"containers": vllm},
        {"containers": vllm, "alarms": {"tokens": every}},
        {"containers": vllm, "alarms": {"tokens": {"ttft": {}, "itl": {}}}},  # none
        {"containers": vllm, "variants": {"b": {"weight": 1}}},
        {"containers": vllm, "variants": {"b": {"containers": sglang}}},
        {"containers": vllm, "shadow": {"name": "b"}},
        {"containers": own},  # nobody knows its metrics
        {"containers": own, "alarms": {"tokens": {"server": "vllm"}}},
    ]
    made = []
    for change in changes:
        values = copy.deepcopy(bases()[0])
        for endpoint in values["endpoints"].values():
            endpoint |= {
                "latency": {"ttft_p95": "500ms", "itl_p50": "30ms", "itl_p95": "50ms"},
                "tokens": {"input": 512, "output": 128},
                **copy.deepcopy(change),
            }
        made.append(values)
    return made


@pytest.mark.parametrize("values", cases(), ids=lambda values: ",".join(values["endpoints"]))
def test_alarms(folder: Path, values: dict[str, Any]) -> None:
    path = folder / "alarms.yaml"
    path.write_text(text_of(values), encoding="utf-8")
    settings = load_settings(path)
    resources = synthesised(settings)["Resources"].values()
    of = {
        kind: [each for each in resources if each["Type"] == f"AWS::CloudWatch::{kind}"]
        for kind in ("Alarm", "CompositeAlarm")
    }
    plans = {key: plan_endpoint(settings, key) for key in settings.endpoints}
    billed = [billed_alarms(settings, key, plan) for key, plan in plans.items()]
    # Target tracking makes two alarms of its own, which are in no template.
    tracking = sum(2 for each in planned_variants(settings) if each.plan.scaling)
    assert sum(each.composites for each in billed) == len(of["CompositeAlarm"]) > 0
    assert sum(each.metrics + each.high_resolution for each in billed) - tracking == sum(
        map(metrics_of, of["Alarm"])
    )
    assert counted(settings)[0] == len(resources)
