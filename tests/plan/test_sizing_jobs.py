"""Twelve sizing jobs whose answers were worked out by hand before the plan was asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from low_latency_endpoint.cli.cost_view import cost_parts
from low_latency_endpoint.errors import SettingsError
from low_latency_endpoint.plan.pinned_model import PinnedFile
from low_latency_endpoint.plan.scaling_pace import FleetAlong
from low_latency_endpoint.plan.traffic_shapes import shape
from low_latency_endpoint.settings import explain_variants, fleets_along, parse_settings, stack_cost
from low_latency_endpoint.settings.variant_plans import planned_variants
from tests.pinned_models import QWEN, written_lock

from .pinned_models import LLAMA_70B

TAG = "2.6.0-transformers4.51.3-{}-ubuntu22.04"
PRICES = {"ml.m5.12xlarge": 2.765, "ml.g6.xlarge": 1.006, "ml.g5.xlarge": 1.408}
ON_CALL = "arn:aws:sns:us-east-1:123456789012:on-call"
LENGTHS = {"input": {"p50": 1200, "p95": 4000}, "output": {"p50": 250, "p95": 800}}
LOAD = {"peak_tps": 1000, "tps_per_instance": 200, "safety_factor": 0.65}


def job(tps=None, zones=2, instance_type="ml.m5.12xlarge", p99="200ms", **further: Any) -> Any:
    """Settings of one endpoint; the model is one of S3 unless another is given."""
    ids = [f"use1-az{number}" for number in (1, 2, 4)[:zones]]
    container = {
        "image": {
            "dlc": {
                "repository": "huggingface-pytorch-inference",
                "tag": TAG.format("gpu-py312-cu124" if ".g" in instance_type else "cpu-py312"),
            }
        },
        "data": {"s3": "s3://my-bucket/m/model.tar.gz"},
    }
    endpoint: dict[str, Any] = {
        "endpoint_name": "e",
        "instance_type": instance_type,
        "latency": {"p99": p99},
        "throughput": LOAD | (tps or {}),
    }
    if "hugging_face" not in further:
        endpoint["containers"] = [container | further.pop("container", {})]
    return {
        "region": "us-east-1",
        "client_zones": {"ids": ids},
        "alarm_topic_arn": ON_CALL,
        "prices": PRICES,
        "endpoints": {"e": endpoint | further},
    }


JOBS: dict[str, tuple[Any, dict[str, Any]]] = {
    # 1000 / 130 = 7.7; 200 x 0.65 x 60; 80 % of 200 ms
    "1 steady": (
        job(),
        {
            "fleet": (2, 8, 16),
            "scaling_target": 7800,
            "alarm_model_latency_p99": 160,
            "warns": {"jumps-unknown", "zone-outage", "zone-outage-at-minimum"},
        },
    ),
    # 1.96 x 12.5 / (200 x 0.35) = 0.35
    "2 a day": (
        job({"rise_tps_per_minute": 1.96}),
        {"fleet": (2, 8, 16), "warns": {"zone-outage", "zone-outage-at-minimum"}, "mean": (4, 5)},
    ),
    # 1000 / (200 x 0.9) = 5.6; four more than two, 730 hours at 2.765
    "3 Monday": (
        job({"from_tps": 200}),
        {
            "fleet": (6, 8, 16),
            "warns": {"zone-outage", "zone-outage-at-minimum"},
            "says": ["2,920 instance hours a month, 8,074 USD", "throughput.peaks"],
        },
    ),
    # 3000 / 162.5 = 18.5; 7 of 19 are lost, and 12 x 250 are all that there is
    "4 a zone of three": (
        job({"peak_tps": 3000, "tps_per_instance": 250, "rise_tps_per_minute": 1}, zones=3),
        {
            "fleet": (3, 19, 29),
            "warns": {"zone-outage", "zone-outage-at-minimum"},
            "says": ["12 of 19 instances remain (3,000 of 3,000 TPS)", "100% of their limit"],
        },
    ),
    "4 with 24": (
        job(
            {"peak_tps": 3000, "tps_per_instance": 250, "safety_factor": 0.5}
            | {"rise_tps_per_minute": 1},
            zones=3,
        ),
        {"fleet": (3, 24, 36), "warns": set()},
    ),
    "5 twenty calls a day": (
        job(
            {"peak_tps": 0.002, "tps_per_instance": 20}, instance_type="ml.c7i.2xlarge", p99="500ms"
        ),
        {
            "fleet": (2, 2, 2),
            "alarm_model_latency_p99": None,
            "scaling_target": None,
            "warns": {"rare-calls", "few-requests-for-rollback"},
            "says": ["Serverless inference", "asynchronous", "scale to zero", "keep_warm"],
        },
    ),
    # 2 x 80 layers x 8 heads x 128 x 2 bytes; 225 + 2 x 141 s
    "6 70B on p5": (
        job(
            {"peak_tps": 20, "tps_per_instance": 10, "rise_tps_per_minute": 0.1}
            | {"concurrency_per_instance": 60},
            instance_type="ml.p5.48xlarge",
            hugging_face={"model": LLAMA_70B.model},
            latency={"ttft_p95": "1s", "itl_p95": "30ms"},
            tokens=LENGTHS,
        ),
        {
            "fleet": (2, 4, 8),
            "says": [
                "327,680 bytes",
                "8.45 minutes",
                "scaling.instance_start",
                "capacity_reservation",
            ],
            "warns": {
                "start-not-stated",
                "zone-outage",
                "zone-outage-at-minimum",
                "scarce-capacity",
            },
        },
    ),
    # 15.1 GB / 300 GB/s
    "7 8B on an L4": (
        job(
            {"peak_tps": 4, "tps_per_instance": 1, "rise_tps_per_minute": 0.1},
            instance_type="ml.g6.2xlarge",
            hugging_face={"model": QWEN.model},
            latency={"ttft_p95": "1s", "itl_p95": "30ms"},
            tokens=LENGTHS,
        ),
        {"refused": r"LLE899[\s\S]*more than 50\.5 ms"},
    ),
    # 5000 x 3600 x 8,192 bytes, a cent each GB
    "8 embeddings": (
        job(
            {
                "peak_tps": 5000,
                "tps_per_instance": 400,
                "safety_factor": 0.5,
                "rise_tps_per_minute": 20,
            },
            zones=3,
            instance_type="ml.g6.xlarge",
            p99="4ms",
            warm_up={"payload": {"text": "x" * 8192}},
        ),
        {
            "fleet": (3, 25, 38),
            "warns": {"short-latency-target"},
            "says": [
                "compare-routing",
                "147 GB of requests in an hour",
                "endpoint: 1.47 US dollars",
            ],
        },
    ),
    # 20 / 0.715 = 27.97; 0.5 x 12.5 / 0.385 = 16.2; of 17 8 are left: 8.8 of up to 17 x 0.715 = 12.155
    "9 images": (
        job(
            {"peak_tps": 20, "tps_per_instance": 1.1, "rise_tps_per_minute": 0.5},
            instance_type="ml.g5.xlarge",
            p99="3s",
        ),
        {
            "fleet": (17, 28, 56),
            "scaling_target": pytest.approx(42.9),
            "routing_strategy": "LEAST_OUTSTANDING_REQUESTS",
            "says": [
                "(8.8 of up to 12.155 TPS",
                "0.072 GB of requests in an hour",
                "for each KB of a request",
            ],
            "warns": {"zone-outage", "zone-outage-at-minimum"},
        },
    ),
    "10 many models": (
        job(
            {"rise_tps_per_minute": 1},
            p99="300ms",
            container={"multi_model": True, "data": {"s3": "s3://my-bucket/models/"}},
        ),
        {
            "says": ["more than 1 % of the calls miss"],
            "warns": {"multi-model-cache", "zone-outage", "zone-outage-at-minimum"},
        },
    ),
    # 900 / 130 and 100 / 130, on two zones
    "11 A/B": (
        job({"rise_tps_per_minute": 1}, variant_weight=9, variants={"b": {"weight": 1}}),
        {
            "fleet": (2, 7, 14),
            "other": 2,
            "says": ["(600 of 900 TPS)"],
            "warns": {"zone-outage", "zone-outage-at-minimum"},
        },
    ),
    # 500 / 130 = 3.8; (8 + 4) x 2.765 + 0.02, / 3.6
    "12 a shadow": (
        job({"rise_tps_per_minute": 2}, shadow={"name": "candidate", "share": 0.5}),
        {
            "fleet": (2, 8, 16),
            "other": 4,
            "million": 33.2 / 3.6,
            "says": ["and 4 instances of its shadow"],
            "warns": {"zone-outage", "zone-outage-at-minimum"},
        },
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the lock file of the models is."""
    shards = [
        PinnedFile(f"model-{each:05}-of-00030.safetensors", 4_700_000_000, "0" * 64)
        for each in range(30)
    ]
    llama = replace(LLAMA_70B, license="mit", files=(LLAMA_70B.files[1], *shards))
    qwen = replace(QWEN, config=QWEN.config | {"vocab_size": 151_936})
    written_lock(tmp_path, llama, qwen)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", JOBS)
def test_the_plan_answers_as_by_hand(name: str, folder: Path) -> None:
    stated, answer = JOBS[name]
    if "refused" in answer:
        with pytest.raises(SettingsError, match=answer["refused"]):
            parse_settings(yaml.safe_dump(stated))
        return
    settings = parse_settings(yaml.safe_dump(stated))
    variants = list(planned_variants(settings))
    explained = explain_variants(settings)
    first, fleet = explained["e"], variants[0].plan.fleet
    cost = stack_cost(settings)
    texts = [*map(str, first.warnings), *(line.text for line in first.summary)]
    texts += [each.note for each in first] + [str(each) for each in cost_parts(settings, cost)]
    found: dict[str, Any] = {
        "fleet": (fleet.minimum, fleet.at_peak, fleet.maximum),
        "warns": {each.id for each in first.warnings},
        "other": variants[-1].plan.fleet.at_peak,
        "says": [text for text in answer.get("says", ()) if any(text in each for each in texts)],
    }
    if "million" in answer:
        found["million"] = pytest.approx(cost.usd_per_million("e"), abs=0.005)
        assert not explained["e/candidate"].warnings
    if "mean" in answer:
        along = fleets_along(settings, shape("daily-wave"))["e"]
        assert isinstance(along, FleetAlong)
        assert answer["mean"][0] < along.mean < answer["mean"][1]
        found["mean"] = answer["mean"]
    for key in answer.keys() - found.keys():
        found[key] = first[key].value if key in first else None
    assert {key: found[key] for key in answer} == answer
