"""What the plan says of private DNS is what the settings file states of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.facts.zones import dns_suffix
from low_latency_endpoint.plan.decisions import Explanation
from low_latency_endpoint.settings import explain_variants, parse_settings

SETTINGS = """
region: us-east-1
account: "123456789012"
client_zones: {{names: [us-east-1a, us-east-1b]}}
{network}
private_link: {{{link}}}
endpoints:
  chat:
    containers: [{{image: {{ecr: {{repository: chat}}}}}}]
    instance_type: ml.m5.xlarge
"""
EXISTING = "network: {vpc_id: vpc-0123456789abcdef0}"
ADOPTED = "interface_endpoint_id: vpce-0123456789abcdef0, security_group_id: sg-0123456789abcdef0"
CALLERS = "zone_hops_caller_to_interface_endpoint"
TAKEN = "private-dns-takes-over"


def explained(link: str = "", network: str = "") -> Explanation:
    settings = parse_settings(SETTINGS.format(network=network, link=link))
    return explain_variants(settings, "chat")["chat"]


def shown(tmp_path: Any, link: str, *options: str) -> str:
    path = tmp_path / "endpoint.yaml"
    path.write_text(SETTINGS.format(network="", link=link), encoding="utf-8")
    done = CliRunner().invoke(app, ["plan", "--settings", str(path), *options])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


@pytest.mark.parametrize(
    ("link", "known", "words", "never"),
    [
        ("", True, ("private DNS answers with the caller's own zone",), ("zonal name of",)),
        ("private_dns: true", True, ("private DNS answers",), ("zonal name of",)),
        (
            "private_dns: false",
            False,
            ("without private DNS", "does not lead to it", "zonal name", "regional name"),
            ("private DNS answers",),
        ),
        (ADOPTED, "not known", ("not known", "own names"), ("private DNS answers",)),
    ],
)
def test_callers_are_told_the_names_that_answer(
    link: str, known: Any, words: tuple[str, ...], never: tuple[str, ...]
) -> None:
    decision = explained(link, EXISTING if "vpce-" in link else "")[CALLERS]
    assert decision.inputs["private DNS"] == known
    text = f"{decision.rule} {decision.note}"
    assert [each for each in words if each not in text] == []
    assert [each for each in never if each in text] == []


def test_each_state_of_private_dns_is_another_plan() -> None:
    texts = {
        explained(link, EXISTING)[CALLERS].rule
        for link in ("private_dns: true", "private_dns: false", ADOPTED)
    }
    assert len(texts) == 3


def test_the_short_plan_and_the_json_say_which_names_callers_use(tmp_path: Any) -> None:
    assert "callers use its own names" in shown(tmp_path, "private_dns: false")
    assert "callers use its own names" not in shown(tmp_path, "")
    answers = {
        link: json.loads(shown(tmp_path, link, "--json"))["shared"]["private_dns"]
        for link in ("", "private_dns: false")
    }
    assert answers == {"": True, "private_dns: false": False}


@pytest.mark.parametrize(
    ("network", "link", "warned"),
    [
        ("", "", False),
        (EXISTING, "", True),
        (EXISTING, "private_dns: true", False),
        (EXISTING, "private_dns: false", False),
        (EXISTING, ADOPTED, False),
    ],
)
def test_an_existing_vpc_is_told_of_private_dns_that_nobody_stated(
    network: str, link: str, warned: bool
) -> None:
    ids = [warning.id for warning in explained(link, network).warnings]
    assert (TAKEN in ids) is warned


def test_the_warning_names_what_is_taken_over_and_how_to_say_otherwise() -> None:
    (text,) = (
        each for each in explained("sagemaker_api: true", EXISTING).warnings if each.id == TAKEN
    )
    for words in (
        "runtime.sagemaker.us-east-1.amazonaws.com and api.sagemaker.us-east-1.amazonaws.com",
        "private_link: {private_dns: true}",
        "private_link.allow_cidrs",
        "refuses roles and endpoints of other accounts",
    ):
        assert words in text
    (narrow,) = (
        each for each in explained("narrow_policy: true", EXISTING).warnings if each.id == TAKEN
    )
    assert "refuses every other endpoint" in narrow
    (fips,) = (each for each in explained("fips: true", EXISTING).warnings if each.id == TAKEN)
    assert "Its policy" not in fips


def test_names_end_as_in_their_partition() -> None:
    from botocore.session import Session

    session = Session()
    for partition in session.get_available_partitions():
        for region in session.get_available_regions("ec2", partition):
            data = session.get_partition_for_region(region)
            assert data == partition
            assert dns_suffix(region) == SUFFIXES[partition], region


#: https://docs.aws.amazon.com/general/latest/gr/rande.html, and botocore's endpoints.json
SUFFIXES = {
    "aws": "amazonaws.com",
    "aws-us-gov": "amazonaws.com",
    "aws-cn": "amazonaws.com.cn",
    "aws-eusc": "amazonaws.eu",
    "aws-iso": "c2s.ic.gov",
    "aws-iso-b": "sc2s.sgov.gov",
    "aws-iso-e": "cloud.adc-e.uk",
    "aws-iso-f": "csp.hci.ic.gov",
}
