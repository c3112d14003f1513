"""Requests of SageMaker's optimization jobs, as pure functions.

A job reads a model from a prefix in S3, changes it, and writes it under another prefix: quantized
weights, a compiled engine, shards, or a head for speculative decoding. What goes together is in no
page of AWS's; AWS's own client refuses the rest before it asks, and so do we:
https://github.com/aws/sagemaker-python-sdk, sagemaker-serve/src/sagemaker/serve/validations/
optimization.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ...account.calls import Account
from ...account.sessions import ClientFactory
from ...account.stacks import stack_ids
from ...errors import rule
from ...facts.instance_types import instance_facts
from ...facts.limit_kinds import Choice, Pattern, Range
from ...facts.limits import API, IMAGE_URI, INSTANCE_TYPE, MODEL_DATA_URI
from ...settings import Settings
from ...settings.option_models import duration_text
from .jobs import JobKind, JobRequest

OPTIMIZATION = JobKind(
    type="optimization",
    operation="optimization_job",
    name="OptimizationJobName",
    status="OptimizationJobStatus",
    ended="OptimizationEndTime",
    jobs="OptimizationJobSummaries",
    first_status="STARTING",
    # model-optimize-create-job.html says of speculative decoding "no additional costs", and AWS's
    # announcement of EAGLE "billed depending on the instance type and job duration".
    cost="AWS chooses an instance to run the job on, of a type that may be a large one, and bills it "
    "for as long as the job runs",
)
OPTIMIZATION_FORM = rule(
    "LLR111",
    "the request for an optimization job is not valid",
    fix="See low-latency optimize --help.",
    source=API + "CreateOptimizationJob.html",
)
MODEL_TO_OPTIMIZE = rule(
    "LLR112",
    "an optimization job needs an uncompressed model under an S3 prefix",
    fix="Pass --model-data s3://bucket/prefix/.",
    source=API + "OptimizationJobModelSource.html",
)
COMBINATION = rule(
    "LLR113",
    "SageMaker does not combine these optimizations on this instance type",
    fix="On GPUs, use --compile alone or with --quantize; or without it --quantize, "
    "--shard and --speculative. On Inferentia and Trainium, use --compile alone.",
    # No page of AWS's says what goes together; its SDK does.
    source="https://github.com/aws/sagemaker-python-sdk/blob/master/sagemaker-serve/src/"
    "sagemaker/serve/validations/optimization.py",
)
RUNTIME = Range(OPTIMIZATION_FORM, "the job's duration limit", 1, None, "seconds")
QUANTIZATION = Choice(OPTIMIZATION_FORM, "the quantization", ("fp8", "awq", "smoothquant"))
_PREFIX = Pattern(
    OPTIMIZATION_FORM,
    "the prefix",
    r"s3://[^/]+/.+/",
    "s3://bucket/prefix/, with / at its end, as the settings' s3_prefix has it",
    max_length=1024,
)
DEFAULT_LIMIT = timedelta(hours=10)  # of ModelBuilder.optimize, sagemaker-python-sdk


@dataclass(frozen=True)
class Techniques:
    """What is done to the model; LLR111 for nothing, or what belongs to another technique."""

    quantize: str | None = None
    compile: bool = False
    shard: bool = False
    speculative: bool = False  # an EAGLE head is trained
    training_data: str | None = None  # for that head, below a prefix in S3; by default AWS's own
    image: str | None = None  # LMI's, of the container that does the rest; by default AWS's choice
    environment: Mapping[str, str] = field(default_factory=dict)  # of that container

    def __post_init__(self) -> None:
        if not (self.quantize or self.in_container or self.speculative):
            raise OPTIMIZATION_FORM.error(
                got="no technique", allowed="--quantize, --compile, --shard or --speculative"
            )
        if self.quantize is not None:
            QUANTIZATION.check(self.quantize, "--quantize")
        if self.image is not None:
            IMAGE_URI.check(self.image, "--image")
        if self.training_data and not self.speculative:
            raise OPTIMIZATION_FORM.error(
                got="--training-data without --speculative", allowed="both"
            )
        if (self.image or self.environment) and not self.in_container:
            raise OPTIMIZATION_FORM.error(
                got="--image or --env with --speculative alone",
                allowed="a technique that supports them",
            )

    @property
    def in_container(self) -> bool:
        """Whether anything runs in a container of the user's choice."""
        return bool(self.quantize) or self.compile or self.shard

    def configs(self) -> list[dict[str, Any]]:
        image = {"Image": self.image} if self.image else {}
        asked = {
            # https://docs.aws.amazon.com/sagemaker/latest/dg/model-optimize-create-job.html
            "Quantization": {"OPTION_QUANTIZE": self.quantize} if self.quantize else None,
            "Compilation": {} if self.compile else None,
            "Sharding": {} if self.shard else None,
        }
        configs: list[dict[str, Any]] = []
        for name, own in asked.items():
            if own is not None:
                environment = {**self.environment, **own}
                override = {"OverrideEnvironment": environment} if environment else {}
                configs.append({f"Model{name}Config": {**image, **override}})
        if self.speculative:
            eagle: dict[str, Any] = {"Technique": "EAGLE"}
            if self.training_data:
                where = MODEL_DATA_URI.check(self.training_data, "--training-data")
                eagle["TrainingDataSource"] = {"S3Uri": where, "S3DataType": "S3Prefix"}
            configs.append({"ModelSpeculativeDecodingConfig": eagle})
        return configs

    def check_for(self, instance_type: str) -> None:
        """Refuse what AWS's client refuses for a type (LLR113), and a type's form (LLE405)."""
        INSTANCE_TYPE.check(instance_type, "--instance-type")
        facts = instance_facts(instance_type)
        kind = "nvidia" if facts is None else facts.accelerator
        reason = next(self._faults(kind), None)
        if reason is not None:
            allowed = {None: "a type with GPUs, Inferentia2 or Trainium", "nvidia": "see the fix"}
            raise COMBINATION.error(
                got=f"{reason} for {instance_type}", allowed=allowed.get(kind, "--compile alone")
            )

    def _faults(self, accelerator: str | None) -> Iterator[str]:
        beside = {
            "--quantize": self.quantize,
            "--shard": self.shard,
            "--speculative": self.speculative,
        }
        others = [name for name, asked in beside.items() if asked]
        if accelerator is None:
            yield "an optimization without an accelerator"
        elif accelerator != "nvidia":
            yield from others
        elif self.compile:
            yield from (f"--compile with {name}" for name in others if name != "--quantize")
        elif self.quantize == "smoothquant":
            yield "--quantize smoothquant without --compile"


def optimization_job(
    name: str,
    role_arn: str,
    model: str,
    output: str,
    instance_type: str,
    techniques: Techniques,
    *,
    max_runtime: timedelta = DEFAULT_LIMIT,
    accept_eula: bool = False,
    notes: Sequence[str] = (),
) -> JobRequest:
    """A job that writes an optimized copy; LLR101, LLR102, LLR111 to LLR113, LLE304, LLE405."""
    techniques.check_for(instance_type)
    _PREFIX.check(output, "--s3-output")
    if not model.startswith("s3://") or not model.endswith("/"):
        raise MODEL_TO_OPTIMIZE.error(
            got=model, allowed="s3://bucket/prefix/", where="--model-data"
        )
    MODEL_DATA_URI.check(model, "--model-data")
    if output.startswith(model) or model.startswith(output):
        raise OPTIMIZATION_FORM.error(
            got=f"{output} for the model in {model}",
            allowed="prefixes that do not contain each other",
            where="--s3-output",
            fix="Choose another --s3-output: both models would be downloaded as one.",
        )
    source: dict[str, Any] = {"S3Uri": model}
    if accept_eula:
        source["ModelAccessConfig"] = {"AcceptEula": True}
    return JobRequest(
        OPTIMIZATION,
        name,
        role_arn,
        {
            "ModelSource": {"S3": source},
            "DeploymentInstanceType": instance_type,
            "OptimizationConfigs": techniques.configs(),
            "OutputConfig": {"S3OutputLocation": output},
            "StoppingCondition": {"MaxRuntimeInSeconds": int(max_runtime.total_seconds())},
        },
        bound=f"{duration_text(max_runtime)}, then AWS ends the job without a result",
        notes=notes,
    )


def parse_environment(given: list[str]) -> dict[str, str]:
    """Variables as ``NAME=VALUE``; ``LLR111`` for anything else, and one that is given twice."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name.strip() or not equals or name in found or name == "OPTION_QUANTIZE":
            raise OPTIMIZATION_FORM.error(
                got=text,
                allowed="NAME=VALUE, each name once; --quantize for OPTION_QUANTIZE",
                where="--env",
            )
        found[name] = value
    return found


def model_prefix(account: Account, settings: Settings, key: str) -> str:
    """The prefix in S3 of the model, staged or stated; LLR112, LLE343 to LLE346."""
    endpoint = settings.endpoints[key]
    model = endpoint.hugging_face
    if model is None:
        data = endpoint.containers[0].data if endpoint.containers else None
        if data is None or data.s3_prefix is None:
            raise MODEL_TO_OPTIMIZE.error(
                got="settings without data: {s3_prefix: ...}", allowed="an uncompressed model"
            )
        return data.s3_prefix
    prefix = model.hub_model.pinned.prefix
    buckets = [model.bucket] if model.bucket else _own_buckets(account, settings.stack_name)
    if len(buckets) != 1:
        raise MODEL_TO_OPTIMIZE.error(
            got=f"{len(buckets)} buckets for models of the Hub in stack {settings.stack_name}",
            allowed="one, into which the deployment staged the model",
            fix="Deploy first, or stage the model into a bucket that the settings name.",
        )
    return f"s3://{buckets[0]}/{prefix}"


def _own_buckets(account: Account, stack: str) -> list[str]:
    """As ``hosting/staged_model.py`` names it."""
    found = stack_ids(account, stack, "AWS::S3::Bucket").items()
    return [bucket for logical, bucket in found if logical.startswith("HubModels")]


def doubts(techniques: Techniques, client: ClientFactory, instance_type: str) -> Iterator[str]:
    """What has to be known before such a job, and no rule forbids."""
    model = client("sagemaker").meta.service_model
    if instance_type not in model.shape_for("OptimizationJobDeploymentInstanceType").enum:
        yield f"{instance_type} is not among the types that boto3 knows for this job"
    if techniques.quantize:
        yield "quantization changes the model's answers: compare them before callers get them"
    if techniques.compile:
        yield "a compiled model runs on the instance type of its job, and on no other"
    if techniques.speculative and techniques.in_container:
        yield "AWS documents --speculative alone; beside others the job may fail at its end"
