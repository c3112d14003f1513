"""Each of AWS's operations that reads an account is called in one module."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import botocore.session
from botocore import xform_name

from low_latency_endpoint.account.calls import READ_ONLY

PACKAGE = Path(__file__).parents[2] / "constructs" / "low_latency_endpoint"
READERS = ("account", "operate", "load_test", "cli")
SERVICES = ("application-autoscaling", "cloudformation", "cloudwatch", "ec2", "logs", "sagemaker")
#: What several commands need, so that it has its place in the one reader.
SHARED = {
    "describe_alarms",
    "describe_endpoint",
    "describe_endpoint_config",
    "describe_model",
    "describe_network_interfaces",
    "describe_scalable_targets",
    "describe_scaling_policies",
    "describe_security_groups",
    "describe_stacks",
    "describe_subnets",
    "describe_vpc_endpoints",
    "get_metric_data",
    "get_template",
    "list_endpoints",
    "list_metrics",
    "list_stack_resources",
}


@cache
def operations() -> frozenset[str]:
    """The reads of the services, as boto3 names them."""
    session = botocore.session.Session()
    names = (
        xform_name(name)
        for service in SERVICES
        for name in session.get_service_model(service).operation_names
    )
    return frozenset(name for name in names if name.startswith(READ_ONLY))


def named(text: str) -> set[str]:
    """The operations that a module's code names: as an attribute of a client, or as text."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        # A template is what jinja gets, too.
        elif isinstance(node, ast.Attribute) and node.attr != "get_template":
            found.add(node.attr)
    return found & operations()


def test_each_operation_is_called_in_one_module() -> None:
    callers: dict[str, list[str]] = defaultdict(list)
    for room in READERS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            if path.name == "local_aws.py":
                continue  # asks what it has started itself
            for operation in named(path.read_text()):
                callers[operation].append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in callers.items() if len(found) > 1} == {}
    assert callers.keys() >= SHARED
    elsewhere = {
        name: callers[name][0] for name in SHARED if not callers[name][0].startswith("account/")
    }
    assert elsewhere == {}


def test_a_call_beside_the_reader_would_be_seen() -> None:
    assert named("account.read('ec2', 'describe_subnets')") == {"describe_subnets"}
    assert named("client('cloudwatch').get_metric_data(**request)") == {"get_metric_data"}
    assert named("def describe_subnets(account): ...") == set()
