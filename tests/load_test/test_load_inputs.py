"""What the options of commands that send load come to, before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from low_latency_endpoint.cli.load_inputs import Sending
from low_latency_endpoint.load_test.search.settings_file import StatedEndpoint
from low_latency_endpoint.options.load import TokenTraffic


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
