"""Settings of a model from the Hugging Face Hub, pinned in a lock file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from ..errors.findings import Finding, breaches
from ..hugging_face import HUB
from ..hugging_face.lock_file import LOCK_NAME, pinned_model
from ..options.rules import SECRET_ARN
from ..plan import limits
from ..plan.decode_pace import hides_pace
from ..plan.hub_serving import CONTEXT_TOKENS, HubModel
from ..plan.s3_names import check_bucket_name
from .container_checks import environment_checks
from .fields import Limited, PathBeside, TextOrNumber
from .model_base import SettingsModel, mapping_of, optional

Server = Literal["vllm", "sglang", "tei", "huggingface", "llama-cpp"]


class HuggingFaceSettings(SettingsModel):
    """A model of the Hugging Face Hub: pinned in a lock file, staged into S3, served offline."""

    model: str = Field(examples=["Qwen/Qwen3-8B"], description="Its name on the Hub.")
    lock: PathBeside = Field(
        default=LOCK_NAME,
        validate_default=True,
        examples=[LOCK_NAME],
        description="The lock file that low-latency pin wrote, relative to this file. Default: "
        f"{LOCK_NAME}.",
    )
    accept_license: str | None = optional(
        "Name of the model's licence, which you have read. Default: only permissive licences "
        "such as apache-2.0 and mit.",
        example="llama3.1",
    )
    server: Server | None = optional(
        "What serves it. Default: by task and accelerator, such as vllm for text generation on "
        "GPUs.",
        example="sglang",
    )
    context_length: Annotated[int, Limited(CONTEXT_TOKENS)] | None = optional(
        "Tokens of the longest request together with its answer. Default: the model's own, or as "
        "many as one request has room for.",
        example=8192,
    )
    trust_remote_code: bool | None = optional(
        "Whether Python code that comes with the model runs; needed where there is some.",
        example=False,
    )
    environment: dict[Annotated[str, Limited(limits.ENVIRONMENT_KEY)], TextOrNumber] = Field(
        default_factory=dict,
        examples=[{"SM_VLLM_MAX_NUM_SEQS": 64}],
        description="Environment variables beside those that the model needs; they win over them.",
    )
    bucket: str | None = optional(
        "Bucket of this account and region for the model's files; stacks may share it. Default: "
        "one that the stack makes.",
        example="my-models",
    )
    token_secret_arn: Annotated[str, Limited(SECRET_ARN)] | None = optional(
        "Secret in Secrets Manager with the Hub's token, for gated and private models. Default: "
        "none.",
        example="arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-token-AbCdEf",
    )
    hub_endpoint: str = optional(
        "The Hub, or a mirror of it, which gets the token. Default: https://huggingface.co.",
        example="https://hub.example.com",
        default=HUB,
    )

    @property  # not kept: a copy with another value would keep it too
    def hub_model(self) -> HubModel:
        """The model as the lock file pins it."""
        return HubModel(
            pinned=pinned_model(self.lock, self.model),
            accept_license=self.accept_license,
            server=self.server,
            context_length=self.context_length,
            trust_remote_code=self.trust_remote_code,
            pace_unknown=hides_pace(self.environment),
        )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """The bucket's name is one, and the environment keeps its limits."""
        if isinstance(given.get("bucket"), str):
            yield from breaches(("bucket",), check_bucket_name, given["bucket"], None)
        yield from environment_checks(mapping_of(given, "environment"))
