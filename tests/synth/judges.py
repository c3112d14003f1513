"""Judges of whole stacks: cfn-lint, cdk-nag's AwsSolutions and CDK's own rules.

The rules of the first and the last are loaded once for each process, which takes seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import aws_cdk as cdk
from cfnlint.api import lint
from cfnlint.core import get_rules

REGION = "us-east-1"
IGNORED = {"W3010": "the zones are the point: the user states them"}


@cache
def _rules() -> Any:
    rules = get_rules([], list(IGNORED), ["W"], {}, False)
    _judge_what_is_equal_once(rules.rules["E3002"])
    return rules


def _judge_what_is_equal_once(rule: Any) -> None:
    """Resources that are equal in many stacks, in which nothing was found, are not judged again.

    Their properties are most of what cfn-lint works on. Equal: the same in every letter, in the
    same Regions, and what they may refer to is of the same kinds under the same names.
    """
    judge = rule.validate
    in_order: set[tuple[Any, ...]] = set()

    def validate(validator: Any, keyword: Any, instance: Any, schema: Any) -> Iterator[Any]:
        text = json.dumps(instance, sort_keys=True, default=str)
        context = validator.context
        named = {**context.resources, **context.parameters}
        key = (
            text,
            tuple(context.regions),
            tuple(
                (name, getattr(each, "type", "")) for name, each in named.items() if name in text
            ),
        )
        if key in in_order:
            return
        found = list(judge(validator, keyword, instance, schema))
        if not found:
            in_order.add(key)
        yield from found

    rule.validate = validate


def cfn_lint(template: str) -> list[str]:
    """Errors and warnings; informational findings are left out, they are matters of taste."""
    return [str(finding) for finding in lint(template, _rules(), [REGION])]


@cache
def cdk_rules() -> cdk.CloudFormationValidatePlugin:
    return cdk.CloudFormationValidatePlugin()


def judged(app: cdk.App) -> cdk.App:
    """The app, whose synthesis raises on any finding of CDK's rules and of cdk-nag."""
    solutions, *_ = packs()
    cdk.Validations.of(app).add_plugins(cdk_rules(), solutions(app))
    return app


def packs() -> list[Any]:
    """cdk-nag's packs of rules, AwsSolutions first."""
    import cdk_nag  # here, as the import fails with an older CDK

    return [
        cdk_nag.AwsSolutionsChecks,
        cdk_nag.NIST80053R5Checks,
        cdk_nag.PCIDSS321Checks,
        cdk_nag.HIPAASecurityChecks,
    ]
