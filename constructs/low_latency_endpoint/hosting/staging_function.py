"""The function that stages models: one for a stack, with the rights for each model's bucket."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from .. import hugging_face
from ..options.safeguards import Safeguards
from ..synthesis.construct_tree import Part, only_child, stack_of
from ..synthesis.lambda_functions import function_runtime, package_asset
from ..synthesis.safeguards import FunctionRole, log_group, safeguards_of, writing_logs

_ID = "HubModelStaging"
_PACKAGE = "staging_function"
TIMEOUT_SECONDS = 900  # as Lambda's guide; see plan.staging_calls.SECONDS_OF_A_CALL
_MEMORY_MIB = 1792
"""With which Lambda gives one processor: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
Parts in memory take 160 MiB of it at most."""


class StagingFunction(Part):
    """Copies files from the Hub into buckets. Runs outside the VPC: the Hub is in the internet."""

    def __init__(self, stack: Stack, guards: Safeguards) -> None:
        super().__init__(stack, _ID)
        guards.apply_to(self)  # and so to the models below it
        code = package_asset(self, Path(hugging_face.__file__).parent / _PACKAGE)
        group = log_group(self, guards, days=30)
        self._role = FunctionRole(self, guards, "log", writing_logs(guards, group))
        function = lambda_.CfnFunction(
            self,
            "Function",
            code=lambda_.CfnFunction.CodeProperty(
                s3_bucket=code.s3_bucket_name, s3_key=code.s3_object_key
            ),
            description="Copies pinned models from the Hugging Face Hub into S3",
            handler=f"{_PACKAGE}.handler.handler",
            role=self._role.arn,
            memory_size=_MEMORY_MIB,
            timeout=TIMEOUT_SECONDS,
            logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=group.ref),
            **function_runtime(self),
        )
        if self._role.before:
            function.node.add_dependency(*self._role.before)
        self.arn: str = function.attr_arn

    @classmethod
    def of_stack(cls, scope: Construct) -> StagingFunction:
        """The one of the scope's stack, made where there is none."""
        stack = stack_of(scope)
        found: StagingFunction = only_child(stack, _ID, lambda: cls(stack, safeguards_of(scope)))
        return found

    def also(self, *statements: Mapping[str, Any]) -> Construct:
        """Let the function do this, too: what several models need stands once."""
        return self._role.also("Rights", *statements)
