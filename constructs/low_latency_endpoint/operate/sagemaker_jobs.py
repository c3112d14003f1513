"""SageMaker jobs about a model: Inference Recommender's jobs, and optimization jobs.

A recommendation job without instance types is a Default job: AWS chooses the types and the traffic.
With them it is an Advanced job, a load test: closed-loop users call, wait for the answer and call
again, and their number grows. Source: the developer guide's "Run a custom load test".

An optimization job quantizes or compiles a language model: it reads the model from the S3 prefix of
the settings and writes it to another prefix.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..account.calls import Account
from ..account.endpoints import describe_model, existing_endpoint, read_endpoint
from ..account.sessions import ClientFactory, aws_errors_in_words
from ..errors import rule
from ..errors.findings import Place
from ..errors.shell_words import shell_word
from ..facts.images import check_image_runs_on
from ..facts.limit_kinds import Choice, Pattern, text_form
from ..facts.limits import API, INSTANCE_TYPE
from ..options.option import NEEDS_ANOTHER
from ..report.document import Cell, Listed, Table
from ..report.numbers import readable
from ..settings import EndpointSettings, environment_place, served_containers
from ..settings.variant_plans import images_of
from ..settings.yaml_editing import YamlEntry

NOT_ADOPTABLE = rule(
    "LLR109",
    "the result cannot be written into the settings",
    fix="Choose another result, or change the settings by hand.",
)
_POLL_SECONDS = 30.0


@dataclass(frozen=True)
class JobKind:
    """What AWS calls a kind of job, and what a job costs."""

    operation: str  # boto3's operations, after the verb
    name_field: str
    status_field: str
    name_option: str  # of the AWS CLI
    cost: str

    def call(self, client: ClientFactory, verb: str, request: Mapping[str, Any]) -> Any:
        with aws_errors_in_words():
            return getattr(client("sagemaker"), f"{verb}_{self.operation}")(**request)

    def aws_command(self, verb: str, name: str) -> str:
        """The AWS CLI's command about the job of this name."""
        return f"aws sagemaker {verb}-{self.operation.replace('_', '-')} {self.name_option} {shell_word(name)}"


@dataclass(frozen=True)
class JobRequest:
    """A job that is not started yet."""

    content: Mapping[str, Any]  # what the API takes, without the job's name and role
    limit: str  # what bounds the job's cost


@dataclass(frozen=True)
class Job:
    """A job as AWS describes it."""

    name: str
    status: str
    failure_reason: str  # empty unless it failed
    description: Mapping[str, Any]  # AWS's whole answer, with the results


def wait_for_job(client: ClientFactory, kind: JobKind, name: str) -> Job:
    """Describe a job every thirty seconds until it has ended."""
    while True:
        answer = kind.call(client, "describe", {kind.name_field: name})
        status = answer[kind.status_field]
        if status in ("COMPLETED", "FAILED", "STOPPED", "DELETED"):
            return Job(name, status, answer.get("FailureReason", ""), answer)
        time.sleep(_POLL_SECONDS)


# --- Inference Recommender ---------------------------------------------------------------------
INFERENCE_RECOMMENDATION = JobKind(
    operation="inference_recommendations_job",
    name_field="JobName",
    status_field="Status",
    name_option="--job-name",
    cost="AWS bills the instances under test, by the second, at the hosting price of their types",
)
MODEL_TO_TEST = rule(
    "LLR103",
    "a recommendation job needs one existing model",
    fix="Deploy the settings if their variant is not deployed. A variant of inference components has "
    "no model of its own: name another endpoint.",
    source=API + "RecommendationJobInputConfig.html",
)
SAMPLE_PAYLOAD = text_form(
    "LLR107",
    "the sample payload of a recommendation job",
    r"s3://[^/]+/.+\.tar\.gz",
    "s3://bucket/name.tar.gz",
    fix="Pack requests like the callers' with tar -czf, upload them, and pass --payload.",
    source=API + "RecommendationJobPayloadConfig.html",
)
#: Frameworks by a part of the image's repository.
_FRAMEWORKS = {
    "pytorch": "PYTORCH",
    "tensorflow": "TENSORFLOW",
    "xgboost": "XGBOOST",
    "scikit-learn": "SAGEMAKER-SCIKIT-LEARN",
}
_TESTS_AT_ONCE = 3
_TEST_HOURS = 2
# One user, three more each minute: 30 after ten minutes. AWS's guide has 15 to 20 users reach 500
# requests per second on ml.c5.large; the test ends by itself when the rate flattens.
_PHASE = {"InitialNumberOfUsers": 1, "SpawnRate": 3, "DurationInSeconds": 600}
_MOST_PER_MINUTE = 30_000  # at which AWS's tests end: 500 requests per second


@dataclass(frozen=True)
class ModelUnderTest:
    """What a recommendation job is to know of a deployed model, apart from its name."""

    target_ms: int  # at p95
    variant_name: str | None = None  # None for the first
    images: tuple[str, ...] | None = None  # of its containers; None for those that are deployed
    content_type: str = "application/json"

    @classmethod
    def of_settings(
        cls, endpoint: EndpointSettings, targets: Mapping[str, float] | None = None
    ) -> ModelUnderTest:
        """As the settings tell it, with other targets if some are given; LLE928 without any."""
        parameters = endpoint.warm_up.payloads[0].headers if endpoint.warm_up else {}
        stated = endpoint.latency.milliseconds if endpoint.latency else {}
        return cls(
            target_ms=latency_target_ms(targets or stated),
            variant_name=endpoint.variant_name,
            images=tuple(images_of(served_containers(endpoint)).values()),
            content_type=parameters.get("ContentType", cls.content_type).partition(";")[0],
        )


def recommendation_request(
    client: ClientFactory,
    endpoint_name: str,
    tested: ModelUnderTest,
    *,
    payload: str,
    instance_types: Sequence[str],
) -> JobRequest:
    """Return the request of a Default job or, with instance types, of an Advanced one.

    Raises LLA101, LLR103, LLR107, LLE405 and the rules of images. AWS is asked for the deployed model alone,
    after all checks of what is stated.
    """
    SAMPLE_PAYLOAD.check(payload, "--payload")
    for name in instance_types:
        INSTANCE_TYPE.check(name, "--instance-type")
    _check_images(tested.images or (), instance_types)
    with aws_errors_in_words():
        model, deployed = _deployed_model(Account(client), endpoint_name, tested.variant_name)
    images = deployed if tested.images is None else tested.images
    _check_images(images, instance_types)
    configured = {**model, "ContainerConfig": _container_config(tested, images, payload)}
    if not instance_types:
        limit = "45 minutes, says AWS; a Default job takes no limit"
        return JobRequest({"JobType": "Default", "InputConfig": configured}, limit)
    tests = len(instance_types)
    at_once = min(tests, _TESTS_AT_ONCE)
    configured["JobDurationInSeconds"] = _TEST_HOURS * 3600
    configured["TrafficPattern"] = {"TrafficType": "PHASES", "Phases": [_PHASE]}
    configured["ResourceLimit"] = {"MaxNumberOfTests": tests, "MaxParallelOfTests": at_once}
    configured["EndpointConfigurations"] = [{"InstanceType": name} for name in instance_types]
    threshold = {"Percentile": "P95", "ValueInMilliseconds": tested.target_ms}
    content = {
        "JobType": "Advanced",
        "InputConfig": configured,
        "StoppingConditions": {
            "MaxInvocations": _MOST_PER_MINUTE,
            "ModelLatencyThresholds": [threshold],
            "FlatInvocations": "Stop",
        },
    }
    limit = f"{_TEST_HOURS} hours, so at most {_TEST_HOURS * at_once} instance hours"
    return JobRequest(content, limit)


def latency_target_ms(targets: Mapping[str, float]) -> int:
    """Return the milliseconds of the target that stands for p95; LLE928 without one.

    AWS's page on ``ModelLatencyThreshold`` asks for P95 in custom load tests. The target's own p95
    is used where there is one; else the target next above, which is looser for p95, or next below,
    which is stricter.
    """
    for statistic in ("p95", "p99", "p99.9", "p90", "p50", "Average"):
        if statistic in targets:
            return max(int(targets[statistic]), 1)  # AWS takes whole milliseconds
    raise NEEDS_ANOTHER.error(
        got="no latency target of the whole call",
        allowed="such as latency.p95, or --target p95=200ms",
    )


def _check_images(images: Sequence[str], instance_types: Sequence[str]) -> None:
    for name in instance_types:
        for image in images:
            check_image_runs_on(image, name, where="--instance-type")


def _container_config(
    tested: ModelUnderTest, images: Sequence[str], payload: str
) -> dict[str, Any]:
    """Return ``ContainerConfig`` of the first container, as far as its image tells it.

    API_RecommendationJobContainerConfig names the values; MACHINE_LEARNING, OTHER and PYTORCH stand
    where nothing tells more.
    """
    image = next(iter(images), "").partition("@")[0]
    repository = image.rpartition("/")[2].partition(":")[0]
    frameworks = [name for part, name in _FRAMEWORKS.items() if part in repository]
    return {
        "Domain": "MACHINE_LEARNING",
        "Task": "OTHER",
        "Framework": frameworks[0] if frameworks else "PYTORCH",
        "PayloadConfig": {
            "SamplePayloadUrl": payload,
            "SupportedContentTypes": [tested.content_type],
        },
        "SupportedEndpointType": "RealTime",
    }


def _deployed_model(
    account: Account, endpoint_name: str, variant_name: str | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the model of a deployed variant and its network, as a request has them; and its images.

    Raises LLA101 and LLR103.
    """
    endpoint = read_endpoint(account, endpoint_name) or existing_endpoint(account, endpoint_name)
    variants = endpoint.variants
    variant = variants.get(variant_name or next(iter(variants), ""))
    if variant is None or variant.model_name is None:
        named = f" {variant_name}" if variant_name else ""
        raise MODEL_TO_TEST.error(
            got=f"no model of a variant{named} in endpoint {endpoint_name}",
            allowed="a deployed variant that has a model of its own",
        )
    if endpoint.update and not endpoint.update.by_aws:
        raise MODEL_TO_TEST.error(
            got=f"{endpoint_name}, which is {endpoint.update.words}: its model may be another one then",
            allowed="an endpoint that nothing updates",
            fix="Wait until the update has ended.",
        )
    model: dict[str, Any] = {"ModelName": variant.model_name}
    described = describe_model(account, variant.model_name)
    if network := described.get("VpcConfig"):
        model["VpcConfig"] = network
    containers = described.get("Containers") or [described.get("PrimaryContainer") or {}]
    images = [container.get("Image") for container in containers]
    return model, tuple(filter(None, images))


@dataclass(frozen=True)
class Recommendation:
    """One result of a job; ``None`` where AWS gave no value."""

    instance_type: str  # empty for a serverless endpoint
    cost_per_hour_usd: float | None
    tps_per_instance: float | None  # the highest rate that one instance held
    model_latency_ms: float | None  # at that rate
    within_target: bool | None
    environment: Mapping[str, str]  # that this result is for
    compilation_job: str  # of a model compiled by Neo; empty for the model as it is


def recommendations(job: Job, target_ms: int) -> list[Recommendation]:
    """Return the results of a job, in AWS's order; none before it has completed."""
    results = []
    for answer in job.description.get("InferenceRecommendations") or ():
        metrics = answer.get("Metrics") or {}
        per_minute = metrics.get("MaxInvocations")
        latency_ms = model_latency_ms(metrics.get("ModelLatency"), per_minute)
        model = answer["ModelConfiguration"]
        parameters = model.get("EnvironmentParameters") or ()
        results.append(
            Recommendation(
                instance_type=answer["EndpointConfiguration"].get("InstanceType", ""),
                cost_per_hour_usd=metrics.get("CostPerHour"),
                tps_per_instance=per_minute / 60 if per_minute else None,
                model_latency_ms=latency_ms,
                within_target=None if latency_ms is None else latency_ms <= target_ms,
                environment={item["Key"]: item["Value"] for item in parameters},
                compilation_job=model.get("CompilationJobName", ""),
            )
        )
    return results


def model_latency_ms(value: int | None, max_invocations: int | None) -> float | None:
    """Return milliseconds from ``ModelLatency``, whose unit AWS states in two ways.

    The results' page says milliseconds, the page on how to get them says microseconds in one tab
    and milliseconds in the other, over the same example of 263596 at 648 requests per minute. By
    Little's law, rate times latency is the number of requests in flight. The value counts as
    milliseconds, unless that would need more than 500 requests in flight, which the recommender's
    few users (183 at the end of an hour's phase) cannot have: then as microseconds.

    AWS's own example, which makes sense as microseconds (2.8 in flight), and a recorded answer in
    milliseconds (4.7 in flight):

    >>> model_latency_ms(263596, 648)
    263.596
    >>> model_latency_ms(171, 1645)
    171.0

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/inference-recommender-interpret-results.html
    """
    if value is None:
        return None
    in_flight = (max_invocations or 0) / 60 * value / 1000
    # Without a rate: nothing that SageMaker answers in real time takes more than eight minutes.
    is_micro = in_flight > 500 or value > 480_000
    return value / 1000 if is_micro else float(value)


def results_table(results: Sequence[Recommendation], target_ms: int) -> list[Table | Listed]:
    """Return a table that marks the results within the target, and notes on it."""
    if not results:
        return []
    marks = {None: Cell("?", "other"), True: Cell("yes", "good"), False: Cell("no", "bad")}
    rows: list[dict[str, str | Cell]] = []
    notes = []
    for number, result in enumerate(results, start=1):
        rows.append(
            {
                "#": str(number),
                "Within target": marks[result.within_target],
                "Instance type": result.instance_type or "serverless",
                "USD per hour": readable(result.cost_per_hour_usd, 4),
                "Calls per s": readable(result.tps_per_instance, 4),
                "Model ms": readable(result.model_latency_ms, 4),
            }
        )
        notes += [f"{number}: {name}={value}" for name, value in result.environment.items()]
    notes.append(f"Target: {target_ms} ms, compared with the model's time at this rate.")
    return [Table.of(rows, align="rllr"), Listed(notes, "soft")]


def adopt_recommendation(
    results: Sequence[Recommendation], number: int, key: str, endpoint: EndpointSettings
) -> dict[Place, Any]:
    """Return type, environment and throughput of a result, for the settings of an endpoint.

    Raises LLR109 without a result of this number, and for one that the settings cannot take.
    """
    if not 1 <= number <= len(results):
        rows = f"a row of the table, 1 to {len(results)}" if results else "none: there is no result"
        raise NOT_ADOPTABLE.error(got=str(number), allowed=rows, where="--write")
    result = results[number - 1]
    _check_adoptable(result, endpoint)
    place: Place = ("endpoints", key)
    values: dict[Place, Any] = {(*place, "instance_type"): result.instance_type}
    for name, value in result.environment.items():
        values[(*place, *environment_place(endpoint), name)] = value
    if endpoint.throughput is not None and result.tps_per_instance is not None:
        values[(*place, "throughput", "tps_per_instance")] = round(result.tps_per_instance, 2)
    return values


def _check_adoptable(result: Recommendation, endpoint: EndpointSettings) -> None:
    """Refuse a result that would make the settings wrong: LLR109."""
    reason = ""
    if not result.instance_type:
        reason = "a serverless endpoint"
    elif result.compilation_job:
        reason = f"another model than the settings', compiled by {result.compilation_job}"
    elif result.within_target is False:
        reason = f"a latency of {readable(result.model_latency_ms)} ms, beyond the target"
    elif endpoint.throughput is not None and result.tps_per_instance is None:
        reason = "no rate, which the settings' throughput needs"
    elif result.environment and len(endpoint.containers) > 1:
        reason = f"environment variables, for one of {len(endpoint.containers)} containers"
    if reason:
        allowed = "an instance type that holds the target, of the model as it is"
        raise NOT_ADOPTABLE.error(got=reason, allowed=allowed, where="--write")


# --- Optimization jobs -------------------------------------------------------------------------
OPTIMIZATION = JobKind(
    operation="optimization_job",
    name_field="OptimizationJobName",
    status_field="OptimizationJobStatus",
    name_option="--optimization-job-name",
    cost="AWS chooses the job's instance, which may be a large one, and bills it while the job runs",
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
_OPTIMIZATION_HOURS = 10  # as ModelBuilder.optimize of AWS's SDK has it


def optimization_request(
    endpoint: EndpointSettings,
    *,
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
    if quantize is not None:
        variables = {"OPTION_QUANTIZE": quantize}
        techniques.append({"ModelQuantizationConfig": {"OverrideEnvironment": variables}})
    if compiles:
        techniques.append({"ModelCompilationConfig": {}})
    content = {
        "ModelSource": {"S3": {"S3Uri": model}},
        "DeploymentInstanceType": instance_type,
        "OptimizationConfigs": techniques,
        "OutputConfig": {"S3OutputLocation": output},
        "StoppingCondition": {"MaxRuntimeInSeconds": _OPTIMIZATION_HOURS * 3600},
    }
    limit = f"{_OPTIMIZATION_HOURS} hours, then AWS ends the job without a result"
    return JobRequest(content, limit)


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


def adopt_optimized_model(job: Job, key: str, endpoint: EndpointSettings) -> dict[Place, Any]:
    """Return type, data, environment and image of a completed job, for an endpoint's settings.

    They are served as AWS's ``ModelBuilder.optimize`` does. An image built from a folder stays.
    Raises LLR109 and LLR112 for settings that cannot take them.
    """
    techniques: dict[str, Any] = {}
    for config in job.description["OptimizationConfigs"]:
        techniques |= config
    _model_prefix(endpoint, compiled="ModelCompilationConfig" in techniques)
    environment = dict(job.description.get("OptimizationEnvironment") or {})
    for technique in techniques.values():
        environment |= technique.get("OverrideEnvironment") or {}
    output = str(job.description["OutputConfig"]["S3OutputLocation"])
    place: Place = ("endpoints", key)
    container: Place = (*place, "containers", 0)
    values: dict[Place, Any] = {
        (*place, "instance_type"): job.description["DeploymentInstanceType"],
        (*container, "data", "s3_prefix"): output.rstrip("/") + "/",
    }
    for name, value in environment.items():
        values[(*container, "environment", name)] = value
    image = (job.description.get("OptimizationOutput") or {}).get("RecommendedInferenceImage")
    stated = endpoint.containers[0].image
    if image is not None and not stated.asset:
        source = next(name for name in ("uri", "dlc", "ecr") if getattr(stated, name))
        values[(*container, "image", source)] = YamlEntry("uri", image)
    return values
