"""Each list of AWS's is read to its end: with a paginator, by its token, or for a stated reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import yaml
from botocore import xform_name

from low_latency_endpoint.account.calls import READ_ONLY, Account
from tests.fake_aws import FakeAws, page_of

ROOT = Path(__file__).parents[2]
SERVICES = (
    *("application-autoscaling", "application-signals", "cloudformation", "cloudtrail"),
    *("cloudwatch", "ec2", "ecr", "ecs", "iam", "lambda", "logs", "pricing", "route53"),
    *("s3", "sagemaker", "service-quotas", "sns", "ssm"),
)
#: These cut their answer and give no token.
CUT = {"describe_stack_resources", "get_metric_statistics"}
#: What reads every page; ``_of`` and ``pages_of`` hand their operation to one of the others.
WHOLE = re.compile(r"\.every\(|get_paginator\(|\b(pages)?_of\(")


def paged_operations() -> set[str]:
    """The reads whose answer says that there is more, by botocore's models, and those that are cut."""
    session, paged = botocore.session.Session(), set(CUT)
    for service in SERVICES:
        model = session.get_service_model(service)
        for name in model.operation_names:
            members = getattr(model.operation_model(name).output_shape, "members", ())
            if any(re.search("token|nextmarker|truncated", each, re.I) for each in members):
                paged.add(xform_name(name))
    return {name for name in paged if name.startswith(READ_ONLY)}


def read_otherwise(path: Path, named: re.Pattern[str]) -> Iterator[str]:
    """The paged operations that a module names without what reads them to the end before them."""
    text = path.read_text("utf-8")
    for operation in named.finditer(text):
        before = text[: operation.end()].splitlines()[-4:]
        if not WHOLE.search("\n".join(before)):
            yield f"{path.relative_to(ROOT)} {operation[1]}"


def test_every_list_is_read_to_its_end_or_for_a_reason() -> None:
    """A read of one page has its reason in `one_page_reads.yaml`; no reason is without a read."""
    named = re.compile(rf"[.\"]({'|'.join(sorted(paged_operations()))})[\"(]")
    modules = [*(ROOT / "constructs").rglob("*.py"), *(ROOT / "tools").rglob("*.py")]
    found = {each for path in modules for each in read_otherwise(path, named)}
    reasons = yaml.safe_load(Path(__file__).with_name("one_page_reads.yaml").read_text("utf-8"))
    assert found == set(reasons)


def test_a_list_without_a_paginator_is_read_by_its_token() -> None:
    """/Route53/latest/APIReference/API_ListHostedZonesByVPC.html: NextToken, and no paginator."""
    zones = [
        {"HostedZoneId": f"Z{number}", "Name": f"{number}.", "Owner": {}} for number in range(230)
    ]

    def listed(asked: Any) -> Any:
        return {"MaxItems": "100"} | page_of("HostedZoneSummaries", zones, asked, 100)

    account = Account(FakeAws({"route53.ListHostedZonesByVPC": listed}), "us-east-1")
    asked = {"VPCId": "vpc-1", "VPCRegion": "us-east-1"}
    read = account.every("route53", "list_hosted_zones_by_vpc", "HostedZoneSummaries", **asked)
    assert read == zones
