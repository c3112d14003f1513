"""Each option of the constructs can be stated in a settings file, or CONTRIBUTING says why not."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

import low_latency_endpoint
from low_latency_endpoint.settings import EndpointSettings, Settings
from low_latency_endpoint.settings.endpoint import DataCaptureSettings, MetricSettings
from low_latency_endpoint.settings.warm_up import KeepWarmSettings, WarmUpSettings

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "constructs" / "low_latency_endpoint"
#: Options, and the settings of the same names. What is called otherwise is handed over by name.
GROUPS = {
    "ConfigurationOptions": EndpointSettings,
    "DataCapture": DataCaptureSettings,
    "EndpointOptions": EndpointSettings,
    "KeepWarmOptions": KeepWarmSettings,
    "MetricsPublishing": MetricSettings,
    "ModelOptions": EndpointSettings,
    "ScalingOptions": EndpointSettings,
    "VariantOptions": EndpointSettings,
    "WarmUpOptions": WarmUpSettings,
}


def handed_over() -> dict[str, set[str]]:
    """Keywords by class, of the calls that make options of settings."""
    found: dict[str, set[str]] = {}
    for path in [PACKAGE / "pattern" / "endpoint_arguments.py", *PACKAGE.glob("settings/*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                for made in (node.func, *node.args[:1]):
                    if isinstance(made, ast.Name):
                        names = {each.arg for each in node.keywords if each.arg}
                        found.setdefault(made.id, set()).update(names)
    return found


@pytest.mark.parametrize("options", GROUPS)
def test_an_option_is_a_setting_or_contributing_says_why_not(options: str) -> None:
    kind = getattr(low_latency_endpoint, options)
    stated = GROUPS[options].model_fields.keys() | Settings.model_fields.keys()
    left = {each.name for each in fields(kind) if each.init} - stated - handed_over()[options]
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert left == set(re.findall(rf"^\| `{options}\.(\w+)` \|", text, re.M))
