"""A model of the Hugging Face Hub, as it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from ..errors.findings import Finding, breaches
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.s3_names import check_bucket_name
from ..options.container import ServingOptions
from ..options.option import Option, Options
from ..options.rules import SECRET_ARN
from ..plan.hub_serving import CONTEXT_TOKENS, HubModel
from ..plan.token_floors import hides_pace
from . import HUB
from .lock_file import LOCK_NAME, pinned_model


@dataclass(frozen=True, kw_only=True)
class HubModelOptions(Options):
    """A model of the Hugging Face Hub, pinned in a lock file, staged in S3, served offline."""

    model: Annotated[str, Option(example="Qwen/Qwen3-8B")]
    """Its name on the Hub."""
    lock: Annotated[str | Path, Option(example=LOCK_NAME, may_be_missing=True)] = LOCK_NAME
    """The lock file that low-latency pin wrote, relative to this file. Default: models.lock.yaml.

    In Python, the path is relative to the app's working folder.
    """
    accept_license: Annotated[str | None, Option(example="llama3.1")] = None
    """Name of the model's licence, to confirm that you have read it. Default: only permissive
    licences such as apache-2.0 and mit are accepted."""
    server: Annotated[
        Literal["vllm", "sglang", "tei", "huggingface", "llama-cpp"] | None,
        Option(example="sglang"),
    ] = None
    """Model server. Default: by task and accelerator, such as vllm for text generation on GPUs."""
    context_length: Annotated[int | None, Option(CONTEXT_TOKENS, 8192)] = None
    """Maximum tokens of a request with its answer. Default: the model's own, or as many as fit for
    one request."""
    trust_remote_code: Annotated[bool | None, Option(example=False)] = None
    """Run Python code that comes with the model; required if it has any."""
    hub_endpoint: Annotated[str, Option(example="https://hub.example.com")] = HUB
    """URL of the Hub or of a mirror, which gets the token. Default: https://huggingface.co."""

    @cached_property
    def hub_model(self) -> HubModel:
        """What the lock file says of it, with what is asked here."""
        return HubModel(
            pinned=pinned_model(self.lock, self.model),
            accept_license=self.accept_license,
            server=self.server,
            context_length=self.context_length,
            trust_remote_code=self.trust_remote_code,
            pace_unknown=hides_pace(getattr(self, "environment", {})),
        )


@dataclass(frozen=True, kw_only=True)
class HuggingFaceSettings(HubModelOptions, ServingOptions):
    """A model of the Hugging Face Hub, pinned in a lock file, staged in S3, served offline."""

    environment: Annotated[
        Mapping[str, str],
        Option(
            example={"SM_VLLM_MAX_NUM_SEQS": 64},
            keys=limits.ENVIRONMENT_KEY,
            known=True,
            as_text=True,
        ),
    ] = field(default_factory=dict)
    """Additional environment variables; they override those that the model needs."""
    bucket: Annotated[str | None, Option(example="my-models")] = None
    """Bucket in this account and Region for the model's files; stacks may share it. Default: the
    stack creates one."""
    token_secret_arn: Annotated[
        str | None,
        Option(SECRET_ARN, "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-token-AbCdEf"),
    ] = None
    """Secrets Manager secret with the Hub's token, for gated and private models. Default: none."""

    def _rules_of_bucket(self) -> Iterator[Finding]:
        """The bucket's name is one."""
        if self.bucket is not None:
            yield from breaches(("bucket",), check_bucket_name, self.bucket, None)
