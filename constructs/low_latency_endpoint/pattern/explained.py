"""Why plans are as they are: a file beside the stack's template, so that the template is short."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import jsii
from aws_cdk import Stack, Stage
from constructs import Construct, IValidation

from ..plan.plan import Plan
from ..synthesis.construct_tree import path_of, stack_of


def explain_beside_template(endpoint: Construct, plans: Mapping[str, Plan]) -> None:
    """Let synthesis write ``<stack>.plan.json``: plans by endpoint, and by variant in it."""
    stack = stack_of(endpoint)
    file: _PlanFile | None = getattr(stack, "_low_latency_endpoint_plan_file", None)
    if file is None:
        file = stack._low_latency_endpoint_plan_file = _PlanFile(stack)  # type: ignore[attr-defined]
        stack.node.add_validation(file)
    file.plans[path_of(endpoint)] = plans


@jsii.implements(IValidation)
class _PlanFile:
    """Asked at each synthesis, in stages and tests too, when the assembly's folder is known."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.plans: dict[str, Mapping[str, Plan]] = {}

    def validate(self) -> list[str]:
        name = self._stack.template_file.removesuffix("template.json") + "plan.json"
        explained = {
            path: {variant: plan.explanation.to_dict() for variant, plan in plans.items()}
            for path, plans in self.plans.items()
        }
        text = json.dumps(self._stack.resolve(explained), indent=2, allow_nan=False)
        outdir = Stage.of(self._stack).outdir  # type: ignore[union-attr]
        Path(outdir, name).write_text(f"{text}\n", encoding="utf-8")
        return []
