"""What Inference Recommender is asked: the model as deployed, the sample payload, and the request.

The traffic of a load test comes from closed-loop users, in phases or stairs: a user calls, waits
for the answer and calls again, so the rate follows from the endpoint's speed. Source of the limits:
the developer guide's "Run a custom load test".
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from ...account.calls import Account
from ...account.endpoints import find_model, read_endpoint
from ...account.sessions import ClientFactory
from ...account.stacks import ENDPOINT_TYPE, made_at, stack_ids
from ...errors import rule
from ...facts.durations import seconds_of
from ...facts.images import check_image_runs_on
from ...facts.instance_types import instance_facts
from ...facts.limit_kinds import Range
from ...facts.limits import API, GUIDE, INSTANCE_TYPE, MAX_TYPES, TRAFFIC_RULE, TYPES_TO_TRY
from ...options.option import options_of
from ...options.recommendation import TrafficPhase, TrafficStairs
from ...options.yaml_source import scalar
from ...report.numbers import readable
from ...settings import ContainerSettings, EndpointSettings, Settings, served_containers
from ...settings.option_models import duration_of, duration_text, model_of
from ...settings.variant_plans import images_of
from .jobs import JobKind, JobRequest

SAMPLE_PAYLOAD = rule(
    "LLR107",
    "a recommendation job needs a sample payload, a .tar.gz in S3",
    fix="Pass --payload s3://bucket/payload.tar.gz. To upload a local file, add --upload-to "
    "s3://bucket/prefix/. Without --payload, --upload-to sends the settings' warm-up payload.",
    source=API + "RecommendationJobPayloadConfig.html",
)

_S3 = re.compile(r"s3://([^/]+)/?(.*)")


@dataclass(frozen=True, slots=True)
class SamplePayload:
    """Where the payload is or will be; ``archive`` is what has to be uploaded there first."""

    uri: str
    content_type: str
    archive: bytes | None = None


def sample_payload(
    given: str | None, upload_to: str | None, content_type: str | None, endpoint: EndpointSettings
) -> SamplePayload:
    """Decide on the payload (S3, a file, or the warm-up's), without touching S3: LLR107."""
    stated = endpoint.warm_up.payloads[0] if endpoint.warm_up else None
    content_type = content_type or (
        stated.headers["ContentType"].partition(";")[0] if stated else "application/json"
    )
    if given is not None and given.startswith("s3://"):
        if not (_S3.fullmatch(given) and given.endswith(".tar.gz")):
            raise SAMPLE_PAYLOAD.error(
                got=given, allowed="s3://bucket/name.tar.gz", where="--payload"
            )
        return SamplePayload(given, content_type)
    if given is None and stated is None:
        raise SAMPLE_PAYLOAD.error(
            got="no payload", allowed="a payload like the callers'", where="--payload"
        )
    file = given or (stated.file if stated else None)
    body = _read(Path(file)) if file is not None else stated.body if stated else b""
    if upload_to is None or not _S3.fullmatch(upload_to):
        raise SAMPLE_PAYLOAD.error(
            got=upload_to or f"{given or 'the payload of the warm-up'}, which is not in S3",
            allowed="--upload-to s3://bucket/prefix/",
            where="--upload-to",
        )
    name = Path(given).name if given else "payload"
    archive = body if name.endswith((".tar.gz", ".tgz")) else packed(body, name)
    # Named by what it holds: the same payload again is the same object, another never replaces it.
    key = hashlib.sha256(archive).hexdigest()[:16]
    return SamplePayload(
        f"{upload_to.rstrip('/')}/sample-payload-{key}.tar.gz", content_type, archive
    )


def packed(body: bytes, name: str) -> bytes:
    """One file as a ``.tar.gz``, the same bytes for the same file."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(body)
        tar.addfile(entry, io.BytesIO(body))
    return gzip.compress(archive.getvalue(), mtime=0)


def upload(client: ClientFactory, payload: SamplePayload) -> None:
    """Put the archive into S3; nothing where the payload is there already."""
    if payload.archive is None:
        return
    match = _S3.fullmatch(payload.uri)
    assert match is not None  # sample_payload made it
    client("s3").put_object(
        Bucket=match[1], Key=match[2], Body=payload.archive, ContentType="application/gzip"
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise SAMPLE_PAYLOAD.error(
            got=f"{path}: {getattr(error, 'strerror', None) or error}",
            allowed="a file, or s3://bucket/name.tar.gz",
            where="--payload",
        ) from error


MODEL_TO_TEST = rule(
    "LLR103",
    "a recommendation job needs one existing model",
    fix="Deploy the stack first (make deploy), or pass --model-name or --model-package-arn.",
    source=API + "RecommendationJobInputConfig.html",
)

# API_RecommendationJobContainerConfig names the values. The service's model takes any text, so they
# are guesses here, and no rule.
_LANGUAGE, _VISION = "NATURAL_LANGUAGE_PROCESSING", "COMPUTER_VISION"
#: Where nothing says more.
_GENERAL = {"Domain": "MACHINE_LEARNING", "Task": "OTHER", "Framework": "PYTORCH"}
#: Tasks of the Hugging Face Hub, as HF_TASK names them.
_HUGGING_FACE = {
    "text-classification": (_LANGUAGE, "CLASSIFICATION"),
    "sentiment-analysis": (_LANGUAGE, "CLASSIFICATION"),
    "zero-shot-classification": (_LANGUAGE, "CLASSIFICATION"),
    "token-classification": (_LANGUAGE, "CLASSIFICATION"),
    "fill-mask": (_LANGUAGE, "FILL_MASK"),
    "text-generation": (_LANGUAGE, "TEXT_GENERATION"),
    "text2text-generation": (_LANGUAGE, "TEXT_GENERATION"),
    "summarization": (_LANGUAGE, "TEXT_GENERATION"),
    "translation": (_LANGUAGE, "TEXT_GENERATION"),
    "feature-extraction": (_LANGUAGE, "OTHER"),
    "sentence-similarity": (_LANGUAGE, "OTHER"),
    "question-answering": (_LANGUAGE, "OTHER"),
    "image-classification": (_VISION, "IMAGE_CLASSIFICATION"),
    "object-detection": (_VISION, "OBJECT_DETECTION"),
    "image-segmentation": (_VISION, "IMAGE_SEGMENTATION"),
}
_IN_REPOSITORY = (
    ("pytorch", "PYTORCH"),
    ("tensorflow", "TENSORFLOW"),
    ("xgboost", "XGBOOST"),
    ("scikit-learn", "SAGEMAKER-SCIKIT-LEARN"),
)
_VERSION = re.compile(r"([0-9]\.[A-Za-z0-9.]{1,8})(?:-|$)")


def find_deployed_model(account: Account, settings: Settings, key: str) -> dict[str, Any]:
    """The model that an endpoint of the settings runs; LLR103 without one."""
    name = settings.endpoints[key].endpoint_name
    if name is None:  # which the stack alone knows, by the endpoint's ARN
        made = stack_ids(account, settings.stack_name, ENDPOINT_TYPE)
        arn = _found(made_at(f"{key}/Endpoint", made), f"endpoint {key} in {settings.stack_name}")
        name = str(arn.rpartition("/")[2])
    variants = _found(read_endpoint(account, name), f"endpoint {name}").variants
    variant = variants.get(settings.endpoints[key].variant_name, next(iter(variants.values())))
    if not variant.model_name:
        raise MODEL_TO_TEST.error(
            got=f"variant {variant.name} without a model of its own (inference components)",
            allowed="a variant with a model",
        )
    return read_model(account, variant.model_name)


def read_model(account: Account, name: str) -> dict[str, Any]:
    """A model and its network, as a job's request has them; LLR103 when there is none."""
    network = _found(find_model(account, name), f"model {name}").get("VpcConfig")
    return {"ModelName": name, **({"VpcConfig": network} if network else {})}


def _found(found: Any, what: str) -> Any:
    if found is None:
        raise MODEL_TO_TEST.error(got=f"no {what}", allowed="a deployed model")
    return found


def describe_container(
    endpoint: EndpointSettings, given: Mapping[str, str | None]
) -> tuple[dict[str, str], list[str]]:
    """``ContainerConfig`` of the first container, and which of its values nothing says."""
    said: dict[str, str] = {}
    first = served_containers(endpoint)[0]
    task = str(first.environment.get("HF_TASK", ""))
    if task in _HUGGING_FACE:
        said["Domain"], said["Task"] = _HUGGING_FACE[task]
    repository, tag = image_name(first)
    framework = next((name for part, name in _IN_REPOSITORY if part in repository), None)
    if framework:
        said["Framework"] = framework
        if version := _VERSION.match(tag):
            said["FrameworkVersion"] = version[1]
    said |= {name: value for name, value in given.items() if value}
    return {**_GENERAL, **said}, [name for name in _GENERAL if name not in said]


def image_name(container: ContainerSettings) -> tuple[str, str]:
    """Last part of the repository's name and tag of an image, as far as the settings say them."""
    name = images_of([container]).get(0, "").partition("@")[0]
    repository, _, tag = name.rpartition("/")[2].partition(":")
    return repository, tag


INFERENCE = JobKind(
    type="",  # the answer tells: Default or Advanced
    operation="inference_recommendations_job",
    name="JobName",
    status="Status",
    ended="CompletionTime",
    jobs="InferenceRecommendationsJobs",
    first_status="PENDING",
    cost="AWS bills the instances under test, by the second, at the hosting price of their types",
    steps=True,
)
STOPPING = rule(
    "LLR106",
    "a limit of the job is out of range",
    fix="Change --max-duration, --max-invocations, --max-parallel or --target.",
    source=GUIDE + "inference-recommender-load-test.html",
)
JOB_SECONDS = Range(STOPPING, "the job's duration limit", 1, 18_000, "seconds")
MAX_INVOCATIONS = Range(STOPPING, "the most requests per minute", 1, 30_000, "requests per minute")
MAX_PARALLEL = Range(STOPPING, "the tests at the same time", 1, 10)
MAX_TESTS = Range(STOPPING, "the number of tests", 1, 10)
#: The statistics of a target, in the order in which one stands in for P95.
_NEAREST = ("p95", "p99", "p99.9", "p90", "p50", "Average")

Traffic = Sequence[TrafficPhase] | TrafficStairs
Shape = TypeVar("Shape", TrafficPhase, TrafficStairs)

#: One user, three more each minute: 30 after ten minutes. AWS's guide has 15 to 20 users reach
#: 500 requests per second on ml.c5.large; the test ends by itself when the rate flattens.
DEFAULT_TRAFFIC = (TrafficPhase(users=1, spawn_rate=3, duration=timedelta(minutes=10)),)


class LatencyThreshold(NamedTuple):
    """At which AWS stops a test; the note says where it differs from the settings' target."""

    percentile: str
    milliseconds: int
    note: str = ""


def threshold_of(targets: Mapping[str, float]) -> LatencyThreshold:
    """The threshold for a latency target, statistic to milliseconds; LLR106 without one.

    AWS's page on ``ModelLatencyThreshold`` takes P95 and P99, and asks for P95 in custom load
    tests. The target's own p95 is used where there is one; else the target next above, which is
    looser for p95, or next below, which is stricter.
    """
    if not targets:
        raise STOPPING.error(
            got="no latency target in the settings",
            allowed="--target p95=200ms, or latency in the settings",
            where="--target",
        )
    name = next(statistic for statistic in _NEAREST if statistic in targets)
    milliseconds = max(int(targets[name]), 1)
    beyond = (
        f"at {milliseconds} ms of p95 your {name} is already beyond its target. Confirm the choice "
        "with low-latency load-test."
    )
    stricter = (
        f"the target of {name.lower()} is stricter for it. Pass --target p95=... for another."
    )
    notes = []
    if name != "p95":
        reason = beyond if name.startswith("p99") else stricter
        notes.append(f"AWS's load tests stop on p95 only: {reason}")
    if targets[name] < 1:
        notes.append("AWS takes whole milliseconds, 1 at least.")
    return LatencyThreshold("P95", milliseconds, " ".join(notes))


def parse_threshold(text: str) -> LatencyThreshold:
    """A threshold from ``p95=150ms``; LLR106 for anything but P95 or P99 and whole milliseconds."""
    match = re.fullmatch(r"[pP](95|99)=(.+)", text)
    duration = duration_of(match[2]) if match else None
    whole, rest = divmod(duration or timedelta(0), timedelta(milliseconds=1))
    if match is None or rest or not 1 <= whole < 2**31:
        raise STOPPING.error(got=text, allowed="p95=150ms, in whole milliseconds", where="--target")
    return LatencyThreshold(f"P{match[1]}", whole)


def parse_shape(kind: type[Shape], text: str, option: str) -> Shape:
    """A phase or stairs as the AWS CLI writes structures; LLR105 for anything else."""
    given = [part.partition("=") for part in text.split(",")]
    try:
        made: Any = model_of(kind).model_validate(
            {name.replace("-", "_"): scalar(value) for name, _, value in given}
        )
        return made  # type: ignore[no-any-return]
    except ValidationError:
        names = (option.name.replace("_", "-") for option in options_of(kind))
        raise TRAFFIC_RULE.error(
            got=text, allowed=",".join(f"{name}=..." for name in names), where=option
        ) from None


def load_test(
    instance_types: Sequence[str],
    threshold: LatencyThreshold,
    traffic: Traffic = DEFAULT_TRAFFIC,
    *,
    max_invocations: int = 30_000,
    max_duration: timedelta = timedelta(hours=2),
    max_parallel: int = 3,
    continue_when_flat: bool = False,
    environment: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """What an Advanced job's request has beyond a Default one's; LLR104, LLR105, LLR106."""
    environment = environment or {}
    _check_count(instance_types, fewest=1)
    for name, values in environment.items():
        if not (1 <= len(values) <= 3 and len(environment) <= 5):
            raise TYPES_TO_TRY.error(
                got=f"{name}={','.join(values)}",
                where="--vary",
                allowed="at most five variables with one to three values each",
                fix="Try fewer values, in several jobs.",
            )
    pattern, sending = _traffic_pattern(traffic)
    limit = JOB_SECONDS.check(max_duration.total_seconds(), "--max-duration")
    if sending > limit:
        raise TRAFFIC_RULE.error(
            got=f"{sending} seconds of traffic",
            allowed=f"at most the job's duration limit, {readable(limit)} seconds",
        )
    tests = len(instance_types) * prod(map(len, environment.values()))
    ranges = [{"Name": name, "Value": list(values)} for name, values in environment.items()]
    vary = {"EnvironmentParameterRanges": {"CategoricalParameterRanges": ranges}} if ranges else {}
    parallel = MAX_PARALLEL.check(max_parallel, "--max-parallel")
    return {
        "InputConfig": {
            "JobDurationInSeconds": int(limit),
            "TrafficPattern": pattern,
            "ResourceLimit": {
                "MaxNumberOfTests": MAX_TESTS.check(tests, "the number of tests"),
                "MaxParallelOfTests": min(parallel, tests),
            },
            "EndpointConfigurations": [
                {"InstanceType": instance_type, **vary} for instance_type in instance_types
            ],
        },
        "StoppingConditions": {
            "MaxInvocations": MAX_INVOCATIONS.check(max_invocations, "--max-invocations"),
            "ModelLatencyThresholds": [
                {"Percentile": threshold.percentile, "ValueInMilliseconds": threshold.milliseconds}
            ],
            "FlatInvocations": "Continue" if continue_when_flat else "Stop",
        },
    }


def _traffic_pattern(traffic: Traffic) -> tuple[dict[str, Any], int]:
    """``TrafficPattern`` of the API, and for how many seconds a test sends."""
    if isinstance(traffic, TrafficStairs):
        seconds = int(seconds_of(traffic.duration))
        stairs = {
            "DurationInSeconds": seconds,
            "NumberOfSteps": traffic.steps,
            "UsersPerStep": traffic.users_per_step,
        }
        return {"TrafficType": "STAIRS", "Stairs": stairs}, seconds
    if not traffic:
        raise TRAFFIC_RULE.error(got="no phase", allowed="phases or stairs")
    phases = [
        {
            "InitialNumberOfUsers": phase.users,
            "SpawnRate": phase.spawn_rate,
            "DurationInSeconds": int(seconds_of(phase.duration)),
        }
        for phase in traffic
    ]
    seconds = sum(phase["DurationInSeconds"] for phase in phases)
    return {"TrafficType": "PHASES", "Phases": phases}, seconds


def inference_job(
    name: str,
    role_arn: str,
    model: Mapping[str, Any],
    container: Mapping[str, str],
    payload: SamplePayload,
    instance_types: Sequence[str] = (),
    test: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> JobRequest:
    """An Advanced job of a :func:`load_test`, else a Default one; LLR101, LLR102, LLR104."""
    _check_count(instance_types)
    described: dict[str, Any] = {
        **container,
        "PayloadConfig": {
            "SamplePayloadUrl": payload.uri,
            "SupportedContentTypes": [payload.content_type],
        },
        "SupportedEndpointType": "RealTime",
    }
    if instance_types and test is None:
        described["SupportedInstanceTypes"] = list(instance_types)
    given = test or {"InputConfig": {}}
    content = {
        "JobType": "Advanced" if test else "Default",
        **given,
        "InputConfig": {**model, "ContainerConfig": described, **given["InputConfig"]},
    }
    return JobRequest(
        INFERENCE,
        name,
        role_arn,
        content,
        bound=_bound(given["InputConfig"]),
        notes=notes,
        before=partial(upload, payload=payload),
    )


def _bound(test: Mapping[str, Any]) -> str:
    if not test:
        return "AWS: within 45 minutes; a Default job takes no limit"
    limit = timedelta(seconds=test["JobDurationInSeconds"])
    hours = test["ResourceLimit"]["MaxParallelOfTests"] * (limit / timedelta(hours=1))
    return f"{duration_text(limit)}, so at most {readable(hours)} instance hours"


def _check_count(instance_types: Sequence[str], fewest: int = 0) -> None:
    if not fewest <= len(instance_types) <= MAX_TYPES:
        raise TYPES_TO_TRY.error(
            got=f"{len(instance_types)} types",
            allowed=f"{fewest} to {MAX_TYPES}",
            where="--instance-type",
        )


def check_types_to_try(instance_types: Sequence[str], endpoint: EndpointSettings) -> list[str]:
    """Check types against the images; gives doubts; LLE405, LLR104, the image rules' codes."""
    doubts: list[str] = []
    twice = [name for name, count in Counter(instance_types).items() if count > 1]
    if twice:
        raise TYPES_TO_TRY.error(
            got=f"{twice[0]} twice", allowed="each type once", where="--instance-type"
        )
    images = images_of(served_containers(endpoint)).values()
    for name in instance_types:
        INSTANCE_TYPE.check(name, "--instance-type")
        facts = instance_facts(name)
        if facts is None:
            doubts.append(f"{name} is not in this library's list of instance types")
        elif facts.burstable:
            raise TYPES_TO_TRY.error(
                got=f"{name}, whose CPU runs on credits",
                allowed="types outside ml.t2",
                where="--instance-type",
            )
        for image in images:
            found = check_image_runs_on(image, name, where="--instance-type")
            doubts += [f"{name}: {doubt}" for doubt in found]
    return doubts
