"""A pinned model of the Hugging Face Hub, copied into S3 by a function when the stack is deployed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from aws_cdk import CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from .. import hugging_face
from ..hugging_face import HUB
from ..options.argument_kinds import checked_arguments
from ..options.safeguards import Safeguards
from ..plan.pinned_model import (
    CALLS_AT_ONCE,
    HUB_ENDPOINT,
    LARGEST_FILE,
    PinnedModel,
    staging_calls,
)
from ..synthesis.annotations import acknowledge_wildcard_resources
from ..synthesis.construct_tree import TreePart, only_child, path_below, stack_of
from ..synthesis.lambda_functions import (
    function_properties,
    package_asset,
    started_by_cloudformation,
)
from ..synthesis.rights import STAGED_PREFIXES, decrypting, reading, reading_secret, staging
from ..synthesis.safeguards import (
    FunctionRole,
    key_arn_of,
    log_group,
    private_bucket,
    safeguards_of,
    writing_logs,
)
from ..synthesis.template_values import is_token

if TYPE_CHECKING:
    from aws_cdk import aws_secretsmanager as secretsmanager

_BUCKET = "HubModels"
_STAGING = "HubModelStaging"
_PACKAGE = "staging_function"
_TIMEOUT_SECONDS = 900  # as Lambda's guide; see plan.staging_calls.SECONDS_OF_A_CALL
_MEMORY_MIB = 1792
"""With which Lambda gives one processor: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
Parts in memory take 160 MiB of it at most."""
# Lambda runs a function that was killed twice more, one and two minutes later:
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
_SERVICE_TIMEOUT = 3 * _TIMEOUT_SECONDS + 300


@checked_arguments
class StagedModel(Construct):
    """The files of a pinned model in S3, under a prefix that carries the commit.

    At the deployment a Lambda function copies each file from the Hub and holds it against the
    pinned size and SHA-256; of a file that differs nothing is kept, and the deployment fails. Files
    that are there already are not asked for again: a second deployment does not call the Hub.
    Instances then load from S3, and never call it.

    All models of a stack share one function, and stacks that use the same bucket share the files:
    each notes that it uses them, and the last to go removes them. What ``low-latency stage`` put
    there stays. Another commit lies under another prefix; the former one's files go after the
    update, when no fleet serves them any more.

    Attributes
    ----------
    pinned : PinnedModel
    bucket : aws_s3.IBucket
    uri : str
        ``s3://bucket/hub/model/commit/files/``; what uses it waits until all files are there.

    Examples
    --------
    >>> from aws_cdk import App, Stack
    >>> from low_latency_endpoint import StagedModel
    >>> from low_latency_endpoint.plan.pinned_model import PinnedFile, PinnedModel
    >>> pinned = PinnedModel(model="acme/tiny", revision="main", commit="7" * 40,
    ...                      files=(PinnedFile("model.safetensors", 2048, "0" * 64),))
    >>> staged = StagedModel(Stack(App(), "Serving"), "Tiny", pinned=pinned)
    >>> staged.uri.endswith(f"/hub/acme/tiny/{'7' * 40}/{pinned.file_list}/")
    True
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        pinned: PinnedModel,
        bucket: s3.IBucket | None = None,
        token: secretsmanager.ISecret | None = None,
        hub_endpoint: str = HUB,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
    ) -> None:
        """The files of a pinned model in S3, under a prefix that carries the commit.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            pinned: From the lock file that ``low-latency pin`` wrote.
            bucket: Of this account, in the stack's Region. By default one for all models of the stack: private, encrypted (with the safeguards' key, if there is one), TLS only.
            token: Holds a token of the Hub as plain text, for gated and private models. The function reads it when it runs; it is sent to the Hub itself only. By default the Hub is asked without.
            hub_endpoint: By default ``https://huggingface.co``; or a mirror of yours.
            removal_policy: What becomes of the files when the stack goes, and of the bucket, if it is made here: the first model decides for it. By default they are removed: all of it is pinned, and can be staged again. RETAIN keeps both.

        Raises:
            ConfigurationError: LLE352 for a file of more than 20 GB, unless a bucket is
                given, where ``low-latency stage`` may have put it; LLE359 for an endpoint
                without TLS; LLE399 for more than 1,000 files.
        """
        super().__init__(scope, id)
        endpoint = _checked(hub_endpoint, path_below(self, scope, id))
        calls = staging_calls(pinned, staged_before=bucket is not None)
        self.pinned = pinned
        self.bucket: s3.IBucket = bucket or _bucket_of_stack(self, removal_policy)
        self._function = _StagingFunction.of_stack(self)
        self._whose: dict[str, Any] = {
            "Model": pinned.model,
            "Commit": pinned.commit,
            "FileList": pinned.file_list,
            "Bucket": self.bucket.bucket_name,
        }
        paths = [file.path for file in pinned.files]
        use = self._resource("Use", removal_policy=removal_policy, Paths=paths)
        use.node.add_dependency(*self._rights(token))
        if self.bucket.policy is not None:
            use.node.add_dependency(self.bucket.policy)
        copies: list[CustomResource] = []
        for number, files in enumerate(calls):
            copy = self._resource(
                f"Files{number}",
                Part=str(number),
                Files=[f"{file.sha256} {file.size} {file.path}" for file in files],
                LargestFile=str(LARGEST_FILE),
                HubEndpoint=endpoint,
                TokenSecretArn=token.secret_arn if token else None,
            )
            copy.node.add_dependency(
                copies[number - CALLS_AT_ONCE] if number >= CALLS_AT_ONCE else use
            )
            copies.append(copy)
        # The same digest leaves it alone: there is nothing to look at again.
        check = self._resource("Check", Paths=paths, Digest=pinned.digest)
        check.node.add_dependency(*copies[-CALLS_AT_ONCE:])
        self.uri: str = f"s3://{check.get_att_string('Bucket')}/{pinned.prefix}"

    def reading(self) -> list[dict[str, Any]]:
        """What a role needs to read the files."""
        statements = reading(self.bucket.bucket_arn, self.pinned.prefix)
        key_arn = key_arn_of(self.bucket)
        return [*statements, decrypting(key_arn)] if key_arn else statements

    def _resource(
        self, kind: str, *, removal_policy: RemovalPolicy | None = None, **properties: Any
    ) -> CustomResource:
        return CustomResource(
            self,
            kind,
            resource_type=f"Custom::HubModel{kind.rstrip('0123456789')}",
            service_token=self._function.arn,
            service_timeout=Duration.seconds(_SERVICE_TIMEOUT),
            removal_policy=removal_policy,
            properties={
                name: value
                for name, value in {**self._whose, **properties}.items()
                if value is not None
            },
        )

    def _rights(self, token: secretsmanager.ISecret | None) -> list[IDependable]:
        rights = self._function.also(*staging(self.bucket.bucket_arn, key_arn_of(self.bucket)))
        acknowledge_wildcard_resources(
            rights,
            [f"{self.bucket.bucket_arn}/{prefix}" for prefix in STAGED_PREFIXES],
            reason="The staging function copies into these prefixes of the bucket, and removes "
            "what no stack uses any more.",
        )
        return [rights] if token is None else [rights, self._reading(token)]

    def _reading(self, token: secretsmanager.ISecret) -> IDependable:
        # An ARN without the six characters at its end is of a secret that is known by name.
        secret = token.secret_full_arn or f"{token.secret_arn}-??????"
        rights = self._function.also(*reading_secret(secret, key_arn_of(token)))
        if secret.endswith("?"):
            acknowledge_wildcard_resources(
                rights,
                [secret],
                reason="The ARN of a secret that is known by its name ends at random.",
            )
        return rights


def staged_for(
    scope: Construct,
    pinned: PinnedModel,
    *,
    bucket: s3.IBucket | None,
    token: secretsmanager.ISecret | None,
    hub_endpoint: str,
) -> StagedModel:
    """The staged model of the scope's stack, made where there is none of these files and bucket."""
    function = _StagingFunction.of_stack(scope)
    name = f"{pinned.model.replace('/', '-')}-{pinned.commit[:12]}-{pinned.file_list}"
    if bucket is not None:
        name += f"-{bucket.node.addr[-8:]}"
    staged = function.node.try_find_child(name)
    if staged is None:
        return StagedModel(
            function, name, pinned=pinned, bucket=bucket, token=token, hub_endpoint=hub_endpoint
        )
    return cast(StagedModel, staged)


def _checked(endpoint: str, where: str) -> str:
    if is_token(endpoint):
        return endpoint  # the function checks it
    # Loads sockets, which an app without a staged model does without.
    from ..hugging_face.staging_function.addresses import StagingFailed, hub_endpoint

    try:
        return hub_endpoint(endpoint)
    except StagingFailed:
        raise HUB_ENDPOINT.error(
            got="something else", allowed="https://, a host, and optionally a path", where=where
        ) from None


def _bucket_of_stack(scope: Construct, removal_policy: RemovalPolicy) -> s3.IBucket:
    stack = stack_of(scope)
    bucket = stack.node.try_find_child(_BUCKET)
    if bucket is not None:
        return cast(s3.Bucket, bucket)
    return private_bucket(
        stack,
        _BUCKET,
        holds="public or licensed model files, pinned by their hashes",
        lifecycle_rules=[
            s3.LifecycleRule(
                id="unfinished", abort_incomplete_multipart_upload_after=Duration.days(1)
            )
        ],
        removal_policy=removal_policy,
        safeguards=safeguards_of(scope),
    )


class _StagingFunction(TreePart):
    """Copies files from the Hub into buckets. Runs outside the client zones' subnets: the Hub is in the internet."""

    def __init__(self, stack: Stack, guards: Safeguards) -> None:
        super().__init__(stack, _STAGING)
        guards.apply_to(self)  # and so to the models below it
        code = package_asset(self, Path(hugging_face.__file__).parent / _PACKAGE)
        group = log_group(self, guards, days=30)
        properties = function_properties(self, guards)
        self._role = FunctionRole(
            self,
            guards,
            "log",
            writing_logs(guards, group),
            in_vpc=properties["vpc_config"] is not None,
        )
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
            timeout=_TIMEOUT_SECONDS,
            logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=group.ref),
            **properties,
        )
        if self._role.before:
            function.node.add_dependency(*self._role.before)
        started_by_cloudformation(function)
        self.arn: str = function.attr_arn

    @classmethod
    def of_stack(cls, scope: Construct) -> _StagingFunction:
        """The one of the scope's stack, made where there is none."""
        stack = stack_of(scope)
        function: _StagingFunction = only_child(
            stack, _STAGING, lambda: cls(stack, safeguards_of(scope))
        )
        return function

    def also(self, *statements: Mapping[str, Any]) -> Construct:
        """Let the function do this, too: what several models need stands once."""
        return self._role.also("Rights", *statements)
