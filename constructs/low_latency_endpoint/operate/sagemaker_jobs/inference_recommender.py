"""SageMaker Inference Recommender: what a job tests, what it answers, and what the settings take.

Without instance types it is a Default job: AWS chooses the types and the traffic. With them it is
an Advanced job, a load test: closed-loop users call, wait for the answer and call again, and their
number grows. Source: the developer guide's "Run a custom load test".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...account.calls import Account
from ...account.endpoints import describe_model, read_endpoint
from ...errors import rule
from ...errors.findings import Place
from ...facts.images import check_image_runs_on
from ...facts.limit_kinds import text_form
from ...facts.limits import API, INSTANCE_TYPE
from ...options.rules import NEEDS_ANOTHER
from ...report.document import Cell, Listed, Table
from ...report.numbers import readable
from ...settings import EndpointSettings, environment_place, served_containers
from ...settings.variant_plans import images_of
from .jobs import NOT_ADOPTABLE, Adoption, Job, JobKind, JobRequest

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
    fix="Deploy the stack first (make deploy).",
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
_JOB_HOURS = 2
# One user, three more each minute: 30 after ten minutes. AWS's guide has 15 to 20 users reach 500
# requests per second on ml.c5.large; the test ends by itself when the rate flattens.
_PHASE = {"InitialNumberOfUsers": 1, "SpawnRate": 3, "DurationInSeconds": 600}
_MOST_PER_MINUTE = 30_000  # at which AWS's tests end: 500 requests per second


def recommendation_request(
    account: Account,
    endpoint_name: str,
    endpoint: EndpointSettings,
    *,
    job_name: str,
    role_arn: str,
    payload: str,
    instance_types: Sequence[str],
) -> JobRequest:
    """Return the request of a Default job or, with instance types, of an Advanced one.

    Raises LLR103, LLR107, LLE405, LLE928 and the rules of images. AWS is asked for the deployed
    model alone, after all other checks.
    """
    SAMPLE_PAYLOAD.check(payload, "--payload")
    statistic, target_ms = latency_target(endpoint)
    notes = _check_types(instance_types, endpoint)
    container = _container_config(endpoint, payload)
    model = _deployed_model(account, endpoint_name, endpoint.variant_name)
    tested = {**model, "ContainerConfig": container}
    content = {
        "JobName": job_name,
        "JobType": "Default",
        "RoleArn": role_arn,
        "InputConfig": tested,
    }
    limit = "45 minutes, says AWS; a Default job takes no limit"
    if instance_types:
        tests = len(instance_types)
        at_once = min(tests, _TESTS_AT_ONCE)
        limit = f"{_JOB_HOURS} hours, so at most {_JOB_HOURS * at_once} instance hours"
        notes.append(
            f"a test ends at a p95 of {target_ms} ms, the settings' target for {statistic}"
        )
        tested["JobDurationInSeconds"] = _JOB_HOURS * 3600
        tested["TrafficPattern"] = {"TrafficType": "PHASES", "Phases": [_PHASE]}
        tested["ResourceLimit"] = {"MaxNumberOfTests": tests, "MaxParallelOfTests": at_once}
        tested["EndpointConfigurations"] = [{"InstanceType": name} for name in instance_types]
        threshold = {"Percentile": "P95", "ValueInMilliseconds": target_ms}
        content["JobType"] = "Advanced"
        content["StoppingConditions"] = {
            "MaxInvocations": _MOST_PER_MINUTE,
            "ModelLatencyThresholds": [threshold],
            "FlatInvocations": "Stop",
        }
    return JobRequest(INFERENCE_RECOMMENDATION, content, limit, notes)


def latency_target(endpoint: EndpointSettings) -> tuple[str, int]:
    """Return the target that stands for p95, and its milliseconds; LLE928 without one.

    AWS's page on ``ModelLatencyThreshold`` asks for P95 in custom load tests. The target's own p95
    is used where there is one; else the target next above, which is looser for p95, or next below,
    which is stricter.
    """
    targets = endpoint.latency.milliseconds if endpoint.latency else {}
    for statistic in ("p95", "p99", "p99.9", "p90", "p50", "Average"):
        if statistic in targets:
            return statistic, max(int(targets[statistic]), 1)  # AWS takes whole milliseconds
    raise NEEDS_ANOTHER.error(
        got="an endpoint without a latency target of the whole call", allowed="such as latency.p95"
    )


def _check_types(instance_types: Sequence[str], endpoint: EndpointSettings) -> list[str]:
    """Refuse types that cannot run the image, before they cost anything; return doubts."""
    doubts = []
    for name in instance_types:
        INSTANCE_TYPE.check(name, "--instance-type")
        for image in images_of(served_containers(endpoint)).values():
            warnings = check_image_runs_on(image, name, where="--instance-type")
            doubts += [f"{name}: {warning}" for warning in warnings]
    return doubts


def _container_config(endpoint: EndpointSettings, payload: str) -> dict[str, Any]:
    """Return ``ContainerConfig`` of the first container, as far as the settings tell it.

    API_RecommendationJobContainerConfig names the values; MACHINE_LEARNING, OTHER and PYTORCH stand
    where nothing tells more.
    """
    image = images_of(served_containers(endpoint)[:1]).get(0, "").partition("@")[0]
    repository, _, tag = image.rpartition("/")[2].partition(":")
    frameworks = [name for part, name in _FRAMEWORKS.items() if part in repository]
    version = re.match(r"([0-9]\.[A-Za-z0-9.]{1,8})(?:-|$)", tag)
    config: dict[str, Any] = {"Domain": "MACHINE_LEARNING", "Task": "OTHER"}
    config["Framework"] = frameworks[0] if frameworks else "PYTORCH"
    if frameworks and version:
        config["FrameworkVersion"] = version[1]
    parameters = endpoint.warm_up.payloads[0].headers if endpoint.warm_up else {}
    content_type = parameters.get("ContentType", "application/json").partition(";")[0]
    sample = {"SamplePayloadUrl": payload, "SupportedContentTypes": [content_type]}
    return {**config, "PayloadConfig": sample, "SupportedEndpointType": "RealTime"}


def _deployed_model(account: Account, endpoint_name: str, variant_name: str) -> dict[str, Any]:
    """Return the model of a deployed variant and its network, as a request has them; LLR103."""
    endpoint = read_endpoint(account, endpoint_name)
    variant = endpoint.variants.get(variant_name) if endpoint else None
    if variant is None or variant.model_name is None:
        raise MODEL_TO_TEST.error(
            got=f"no model of a variant {variant_name} in endpoint {endpoint_name}",
            allowed="a deployed variant that has a model of its own",
        )
    model: dict[str, Any] = {"ModelName": variant.model_name}
    network = describe_model(account, variant.model_name).get("VpcConfig")
    if network:
        model["VpcConfig"] = network
    return model


@dataclass(frozen=True)
class Recommendation:
    """One result of a job; ``None`` where AWS gave no value."""

    instance_type: str  # empty for a serverless endpoint
    cost_per_hour_usd: float | None
    cost_per_inference_usd: float | None
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
                cost_per_inference_usd=metrics.get("CostPerInference"),
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


def results_table(
    results: Sequence[Recommendation], target_ms: int, current_type: str
) -> list[Table | Listed]:
    """Return a table that marks the results within the target, and notes on it."""
    marks = {None: Cell("?", "other"), True: Cell("yes", "good"), False: Cell("no", "bad")}
    rows: list[dict[str, str | Cell]] = []
    notes = []
    for number, result in enumerate(results, start=1):
        per_inference = result.cost_per_inference_usd
        per_million = None if per_inference is None else per_inference * 1e6
        now = " (now)" if result.instance_type == current_type else ""
        rows.append(
            {
                "#": str(number),
                "Within target": marks[result.within_target],
                "Instance type": (result.instance_type or "serverless") + now,
                "USD per hour": _number(result.cost_per_hour_usd, ".3f"),
                "USD per million": _number(per_million, ".2f"),
                "Calls per s": _number(result.tps_per_instance, ".1f"),
                "Model ms": _number(result.model_latency_ms, ".4g"),
            }
        )
        notes += [f"{number}: {name}={value}" for name, value in result.environment.items()]
    notes.append(
        f"Target: {target_ms} ms, compared with the model's time; calls per second of one instance, "
        "from Inference Recommender's few users."
    )
    return [Table.of(rows, align="rllr"), Listed(notes, "soft")] if rows else []


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def adopt_recommendation(
    results: Sequence[Recommendation], number: int, key: str, endpoint: EndpointSettings
) -> Adoption:
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
    notes = []
    rate = result.tps_per_instance or 0.0
    if endpoint.throughput is not None:
        values[(*place, "throughput", "tps_per_instance")] = round(rate, 2)
        notes.append(
            "tps_per_instance is AWS's figure with its own few users; confirm it with low-latency "
            "load-test --confirm before production relies on it."
        )
    if rate * 60 >= 0.98 * _MOST_PER_MINUTE:  # AWS's tests end there, or a little below
        notes.append("AWS's tests end at 500 requests per second: the instance may hold more.")
    return Adoption(values, notes)


def _check_adoptable(result: Recommendation, endpoint: EndpointSettings) -> None:
    """Refuse a result that would make the settings wrong: LLR109."""
    reason = ""
    if not result.instance_type:
        reason = "a serverless endpoint"
    elif result.compilation_job:
        reason = f"another model than the settings', compiled by {result.compilation_job}"
    elif result.within_target is False:
        latency = readable(result.model_latency_ms or 0.0)
        reason = f"a latency of {latency} ms, beyond the target"
    elif endpoint.throughput is not None and result.tps_per_instance is None:
        reason = "no rate, which the settings' throughput needs"
    elif result.environment and len(endpoint.containers) > 1:
        reason = f"environment variables, for one of {len(endpoint.containers)} containers"
    if reason:
        allowed = "an instance type that holds the target, of the model as it is"
        raise NOT_ADOPTABLE.error(got=reason, allowed=allowed, where="--write")
