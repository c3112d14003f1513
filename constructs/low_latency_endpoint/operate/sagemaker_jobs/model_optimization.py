"""SageMaker's optimization jobs: quantize or compile a language model, and serve the result.

A job reads the model from the S3 prefix of the settings and writes it to another prefix.
"""

from __future__ import annotations

from typing import Any

from ...errors import rule
from ...errors.findings import Place
from ...facts.limit_kinds import Choice, Pattern
from ...facts.limits import API, INSTANCE_TYPE
from ...settings import EndpointSettings
from ...settings.yaml_editing import YamlEntry
from .jobs import NOT_ADOPTABLE, Adoption, Job, JobKind, JobRequest

OPTIMIZATION = JobKind(
    operation="optimization_job",
    name_field="OptimizationJobName",
    status_field="OptimizationJobStatus",
    name_option="--optimization-job-name",
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
    fix="State one container with data: {s3_prefix: s3://bucket/prefix/}, or use the AWS CLI.",
    source=API + "OptimizationJobModelSource.html",
)
_QUANTIZATION = Choice(OPTIMIZATION_FORM, "the quantization", ("fp8", "awq", "smoothquant"))
_OUTPUT = Pattern(OPTIMIZATION_FORM, "the output", r"s3://[^/]+/.+/", "s3://bucket/prefix/", 1024)
_JOB_HOURS = 10  # as ModelBuilder.optimize of AWS's SDK has it


def optimization_request(
    endpoint: EndpointSettings,
    *,
    job_name: str,
    role_arn: str,
    output: str,
    instance_type: str,
    quantize: str | None,
    compiles: bool,
) -> JobRequest:
    """Return the request for a job that writes an optimized copy of the settings' model.

    Raises LLE405, LLR109, LLR111 and LLR112. What goes together on which instance type is AWS's to
    judge: no page of AWS's says it.
    """
    INSTANCE_TYPE.check(instance_type, "--instance-type")
    if quantize is not None:
        _QUANTIZATION.check(quantize, "--quantize")
    elif not compiles:
        raise OPTIMIZATION_FORM.error(got="neither", allowed="--quantize or --compile")
    model = _model_prefix(endpoint, compiled=compiles)
    _OUTPUT.check(output, "--s3-output")
    if output.startswith(model) or model.startswith(output):
        raise OPTIMIZATION_FORM.error(
            got=f"{output} for the model in {model}",
            allowed="prefixes that do not contain each other",
            where="--s3-output",
            fix="Choose another --s3-output: both models would be downloaded as one.",
        )
    techniques: list[dict[str, Any]] = []
    notes = []
    if quantize is not None:
        variables = {"OPTION_QUANTIZE": quantize}
        techniques.append({"ModelQuantizationConfig": {"OverrideEnvironment": variables}})
        notes.append(
            "quantization changes the model's answers: compare them before callers get them"
        )
    if compiles:
        techniques.append({"ModelCompilationConfig": {}})
        notes.append("a compiled model runs on the instance type of its job, and on no other")
    content = {
        "OptimizationJobName": job_name,
        "RoleArn": role_arn,
        "ModelSource": {"S3": {"S3Uri": model}},
        "DeploymentInstanceType": instance_type,
        "OptimizationConfigs": techniques,
        "OutputConfig": {"S3OutputLocation": output},
        "StoppingCondition": {"MaxRuntimeInSeconds": _JOB_HOURS * 3600},
    }
    limit = f"{_JOB_HOURS} hours, then AWS ends the job without a result"
    return JobRequest(OPTIMIZATION, content, limit, notes)


def _model_prefix(endpoint: EndpointSettings, *, compiled: bool) -> str:
    """Return the S3 prefix of the model, in settings that can take the result: LLR109, LLR112."""
    containers = endpoint.containers
    data = containers[0].data if len(containers) == 1 else None
    if data is None or data.s3_prefix is None:
        model = "hugging_face" if endpoint.hugging_face else f"{len(containers)} containers"
        allowed = "one container with data: {s3_prefix: ...}"
        raise MODEL_TO_OPTIMIZE.error(got=f"{model} without such data", allowed=allowed)
    if compiled and endpoint.instance_pools:
        raise NOT_ADOPTABLE.error(
            got="a compiled model, and instance_pools",
            allowed="one instance type",
            fix="Remove instance_pools: a compiled model runs on the type of its job.",
        )
    return data.s3_prefix


def adopt_optimized_model(job: Job, key: str, endpoint: EndpointSettings) -> Adoption:
    """Return type, data, environment and image of a completed job, for an endpoint's settings.

    They are served as AWS's ``ModelBuilder.optimize`` does. Raises LLR109 and LLR112 for settings
    that cannot take them.
    """
    techniques: dict[str, Any] = {}
    for config in job.description["OptimizationConfigs"]:
        techniques |= config
    compiled = "ModelCompilationConfig" in techniques
    _model_prefix(endpoint, compiled=compiled)
    instance_type = job.description["DeploymentInstanceType"]
    environment = dict(job.description.get("OptimizationEnvironment") or {})
    for technique in techniques.values():
        environment |= technique.get("OverrideEnvironment") or {}
    place: Place = ("endpoints", key)
    container: Place = (*place, "containers", 0)
    values: dict[Place, Any] = {(*place, "instance_type"): instance_type}
    values[(*container, "data", "s3_prefix")] = model_location(job)
    for name, value in environment.items():
        values[(*container, "environment", name)] = value
    notes = []
    if compiled:
        notes.append(
            f"Compiled for {instance_type}: another type, image, number of cores, sequence length or "
            "batch size needs another job. Nothing is compiled when an instance starts."
        )
    if endpoint.throughput is not None:
        notes.append(
            "throughput.tps_per_instance is still the model's from before: measure it with "
            "low-latency load-test --find-limit."
        )
    image = (job.description.get("OptimizationOutput") or {}).get("RecommendedInferenceImage")
    stated = endpoint.containers[0].image
    source = next(name for name in ("uri", "dlc", "ecr", "asset") if getattr(stated, name))
    if image is None:
        notes.append("AWS recommends no image: the settings' own stays.")
    elif source == "asset":
        notes.append(f"Left to you: the image. The result is for image: {{uri: {image}}}.")
    else:
        values[(*container, "image", source)] = YamlEntry("uri", image)
    return Adoption(values, notes)


def model_location(job: Job) -> str:
    """The S3 prefix that a job writes to, with / at its end."""
    return str(job.description["OutputConfig"]["S3OutputLocation"]).rstrip("/") + "/"
