"""Judges of whole stacks: cfn-lint, cdk-nag's AwsSolutions and CDK's own rules.

The rules of the first and the last are loaded once for each process, which takes seconds.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import aws_cdk as cdk
import cdk_nag
from cfnlint.api import lint
from cfnlint.core import get_rules

REGION = "us-east-1"
IGNORED = {"W3010": "the zones are the point: the user states them"}


@cache
def _rules() -> Any:
    return get_rules([], list(IGNORED), ["W"], {}, False)


def cfn_lint(template: str) -> list[str]:
    """Errors and warnings; informational findings are left out, they are matters of taste."""
    return [str(finding) for finding in lint(template, _rules(), [REGION])]


@cache
def _cdk_rules() -> cdk.CloudFormationValidatePlugin:
    return cdk.CloudFormationValidatePlugin()


def judged(app: cdk.App) -> cdk.App:
    """The app, whose synthesis raises on any finding of CDK's rules and of cdk-nag."""
    cdk.Validations.of(app).add_plugins(_cdk_rules(), cdk_nag.AwsSolutionsChecks(app))
    return app
