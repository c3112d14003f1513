"""The page with the deploying role's statements is in step with the library, and its policies fit IAM."""

from __future__ import annotations

import json
import re
from pathlib import Path

from docs.make_deploying_role import deploying_role_tables
from docs.make_settings_tables import rewrite

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "deploying-role.md"
MANAGED_POLICY = 6144
"""Characters but for white space:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
VALUES = {"ACCOUNT": "123456789012", "REGION": "ap-southeast-1", "STACK": "LowLatencyEndpoint"}


def test_the_page_is_in_step(tmp_path: Path) -> None:
    copy = tmp_path / PAGE.name
    copy.write_bytes(PAGE.read_bytes())
    rewrite(copy, deploying_role_tables())
    assert copy.read_text("utf-8") == PAGE.read_text("utf-8"), "run: make docs"


def test_each_policy_is_a_managed_policy() -> None:
    policies = re.findall(r"^```json\n(.*?)^```", PAGE.read_text("utf-8"), re.S | re.M)
    assert len(policies) > 2
    for policy in policies:
        text = re.sub("ACCOUNT|REGION|STACK", lambda found: VALUES[found[0]], policy)
        assert len(re.sub(r"\s", "", text)) <= MANAGED_POLICY
        assert json.loads(text)["Statement"]
