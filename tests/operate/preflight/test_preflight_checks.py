"""Each check before a deploy: one passing, failing, doubtful and unreadable case at least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from low_latency_endpoint.operate.checking.checks import checks
from tests.fake_aws import REFUSED, Refused
from tests.operate.outcomes import assert_told
from tests.operate.preflight.cases import CASES, FOR_OTHERS, Case, run
from tests.operate.preflight.world import ADOPTED, quotas


@pytest.mark.parametrize("case", CASES, ids=str)
def test_check(case: Case) -> None:
    results, _ = run(case)
    assert_told(results, case.status, case.words)


#: Reads that a check can do without, because another one tells as well.
DISPENSABLE = {
    ("LLP204", "sts.GetCallerIdentity"),
    ("LLP202", "sts.GetCallerIdentity"),
    ("LLP203", "sts.GetCallerIdentity"),
    ("LLP209", "sts.GetCallerIdentity"),
    ("LLP404", "s3.GetBucketLocation"),
}
PASSING = [case for case in CASES if case.status == "pass"]


@pytest.mark.parametrize("case", PASSING, ids=str)
def test_what_is_refused_is_unknown_and_never_a_pass(case: Case) -> None:
    healthy, aws = run(case)
    for operation in dict.fromkeys(aws.asked):
        if (case.check, operation) in DISPENSABLE:
            continue
        refused = replace(case, aws={**case.aws, operation: REFUSED})
        results, _ = run(refused)
        unknowns = [each for each in results if each.status == "unknown"]
        assert unknowns, (operation, results)
        assert any(
            operation.partition(".")[2] in each.evidence + each.fix
            or "GetObject" in each.evidence
            or "ListBucket" in each.evidence
            or "LLP" in each.evidence
            for each in unknowns
        ), unknowns
        assert sum(each.status == "pass" for each in results) < len(healthy)


#: Reads of a VPC, of which AWS answers with an empty list where there is none.
OF_A_VPC = {
    "ec2.DescribeFlowLogs": {"FlowLogs": []},
    "ec2.DescribeRouteTables": {"RouteTables": []},
    "ec2.DescribeSubnets": {"Subnets": []},
    "ec2.DescribeVpcEndpoints": {"VpcEndpoints": []},
    "ec2.DescribeVpcs": {"Vpcs": []},
    "route53.ListHostedZonesByVPC": {"HostedZoneSummaries": []},
}
NO_VPC = {
    **OF_A_VPC,
    "ec2.DescribeVpcAttribute": Refused("InvalidVpcID.NotFound", "There is none.", 400),
}


@pytest.mark.parametrize("check", [each.id for each in checks("LLP")])
@pytest.mark.parametrize("settings", [{}, FOR_OTHERS], ids=["own", "for others"])
def test_what_does_not_exist_passes_no_check(check: str, settings: Mapping[str, Any]) -> None:
    results, aws = run(Case(check, "", settings=settings, aws=NO_VPC))
    if NO_VPC.keys().isdisjoint(aws.asked):
        return
    assert [each for each in results if each.status == "pass"] == []


def test_every_check_has_cases_that_pass_and_that_do_not() -> None:
    ids = {each.id for each in checks("LLP")}
    assert ids == {case.check for case in PASSING}
    assert ids == {case.check for case in CASES if case.status in ("fail", "warn")}


def test_a_page_of_quotas_after_the_first_is_read() -> None:
    def pages(params: Mapping[str, Any]) -> Any:
        if "NextToken" not in params:
            return {**quotas(ml_g5_xlarge=1), "NextToken": "2"}
        return quotas(ml_m5_xlarge=99)

    results, aws = run(Case("LLP302", "pass", aws={"service-quotas.ListServiceQuotas": pages}))
    assert [each.status for each in results] == ["pass"]
    assert "quota 99" in results[0].evidence
    assert aws.asked.count("service-quotas.ListServiceQuotas") == 2


@pytest.mark.parametrize(
    ("check", "settings"),
    [
        ("LLP203", {"private_link": {"private_dns": False}}),
        ("LLP203", {"network": None}),
        ("LLP209", {"private_link": {"private_dns": False}}),
        ("LLP209", {"network": None}),
        ("LLP209", ADOPTED),
    ],
)
def test_a_name_that_is_left_alone_is_no_matter(check: str, settings: Mapping[str, Any]) -> None:
    results, aws = run(Case(check, "", settings=settings))
    assert (results, aws.asked) == ([], [])
