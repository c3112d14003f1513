"""What the options of commands that send load come to, before anything is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.cli.load_inputs import Sending
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.search.settings_file import StatedEndpoint, stated_endpoint
from low_latency_endpoint.options.load import TokenTraffic
from low_latency_endpoint.plan.request_size import request_size, size_difference


def stated(**changes: Any) -> StatedEndpoint:
    """Settings whose warm-up sends plain text."""
    return StatedEndpoint(
        **{
            "endpoint_name": "chat",
            "region": "us-east-1",
            "targets": {},
            "peak_tps": None,
            "safety_factor": None,
            "payloads": None,
            "content_type": "text/plain",
            "target_model": None,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("options", "settings", "content_type"),
    [
        ({}, {}, "text/plain"),
        ({"payload": "{}"}, {}, "application/json"),
        ({"payload": "rows.CSV"}, {}, "text/csv"),
        ({"payload": "array.npy"}, {}, "application/x-npy"),
        ({"payload": "lines.jsonl"}, {}, "application/json"),
        ({"payload": "rows.csv", "content_type": "text/plain"}, {}, "text/plain"),
        ({"tokens": "input=5,output=1"}, {}, "application/json"),
        ({}, {"tokens": TokenTraffic(input=5, output=1)}, "application/json"),
        (
            {"tokens": "input=5,output=1", "content_type": "application/jsonlines"},
            {},
            "application/jsonlines",
        ),
    ],
)
def test_the_content_type_is_that_of_what_is_sent(
    options: dict[str, Any], settings: dict[str, Any], content_type: str
) -> None:
    target = Sending(region="us-east-1", **options).target("chat", stated(**settings))
    assert target.content_type == content_type


def test_payloads_of_another_size_than_the_callers_are_told(tmp_path: Path) -> None:
    settings = tmp_path / "endpoint.yaml"
    settings.write_text(
        "client_zones: {ids: [use1-az1, use1-az2]}\n"
        "endpoints: {e: {instance_type: ml.m5.xlarge, containers: [{image: {uri: a/b:1}}],"
        " payload_bytes: 5000000}}\n"
    )
    stated = stated_endpoint(settings, "e").payload_bytes
    small = Payloads.of_bytes(b"x" * 40, b"x").largest_bytes
    assert (stated, small) == (5_000_000, 40)
    size = request_size(stated, None)
    assert "the load test sends 40 bytes" in size_difference(size, small, "load test")
    assert not size_difference(size, 4_000_000, "load test")
    assert Payloads(generator="module:function").largest_bytes is None
