"""The page "Bring it into your app": its Python runs, its links lead somewhere."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from low_latency_endpoint import LowLatencyEndpoint

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "in-your-app.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.S | re.M)


@pytest.fixture(scope="module")
def written():
    """What the page's Python makes, from the repository's own endpoint.yaml."""
    space: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        for block in BLOCKS:
            exec(compile(block, "docs/how-to/in-your-app.md", "exec"), space)
    return space


def test_all_of_the_page_synthesises(written):
    stacks = {each.stack_name: each.template for each in written["app"].synth().stacks}
    endpoints = {
        name: sorted(
            str(each["Properties"]["EndpointName"])
            for each in template["Resources"].values()
            if each["Type"] == "AWS::SageMaker::Endpoint"
        )
        for name, template in stacks.items()
    }
    assert endpoints["Shop"] == ["sentiment"]
    assert endpoints["Serving"] == ["churn", "fraud"]
    assert endpoints["OnCall"] == []
    assert endpoints["Models"] == ["models"]
    assert len(endpoints["FromSettings"]) == 1
    rules = [each for each in stacks["Orders"]["Resources"].values() if "Ingress" in each["Type"]]
    assert len(rules) == 1  # in the caller's stack, as the comment says


def test_what_endpoints_share_belongs_to_none_of_them(written):
    """An endpoint that is retired takes along what it made."""
    every = [
        each for each in written["app"].node.find_all() if isinstance(each, LowLatencyEndpoint)
    ]
    for shared in ("network", "private_link"):
        used = Counter(getattr(each, shared) for each in every)
        assert max(used.values()) > 1  # the page has a case
        for part, users in used.items():
            owners = [one for one in part.node.scopes if isinstance(one, LowLatencyEndpoint)]
            assert users == 1 or not owners, part.node.path


def test_the_parameters_are_those_of_the_table(written):
    template = next(
        each.template for each in written["app"].synth().stacks if each.stack_name == "Shop"
    )
    names = {
        re.sub(r"us-east-1.", "<zone>", each["Properties"]["Name"])
        for each in template["Resources"].values()
        if each["Type"] == "AWS::SSM::Parameter"
    }
    assert names == set(re.findall(r"^\| `(/shop/[^`]*)`", PAGE, flags=re.M))
