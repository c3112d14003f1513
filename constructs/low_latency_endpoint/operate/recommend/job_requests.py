"""Requests to Inference Recommender: pure functions from options to what boto3 sends.

The traffic of a load test comes from closed-loop users, in phases or stairs: a user calls, waits
for the answer and calls again, so the rate follows from the endpoint's speed. Source of the limits:
the developer guide's "Run a custom load test".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import prod
from typing import Any, TypeVar

from pydantic import ValidationError

from ...errors import rule
from ...plan.images import check_image_runs_on
from ...plan.instance_types import instance_facts
from ...plan.limits import API, GUIDE, INSTANCE_TYPE, Pattern, Range
from ...plan.recommendation_limits import MAX_TYPES, TRAFFIC_RULE, TYPES_TO_TRY
from ...settings import EndpointSettings, served_containers
from ...settings.fields import duration_of
from ...settings.planned import images_of
from ...settings.recommendation import PhaseSettings, StairsSettings
from ...settings.yaml_source import scalar
from .jobs import INFERENCE, JobRequest
from .payload import SamplePayload
from .threshold import STOPPING, LatencyThreshold

JOB_NAME = Pattern(
    rule(
        "LLR101",
        "the name of a recommendation job is not valid",
        fix="Choose another --job-name, or leave it out.",
        source=API + "CreateInferenceRecommendationsJob.html",
    ),
    "the job's name",
    r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}",
    "letters, digits and inner hyphens",
    max_length=63,
)
JOB_ROLE = Pattern(
    rule(
        "LLR102",
        "a recommendation job needs a role of its own",
        fix="Pass --role-arn, a role with AmazonSageMakerFullAccess and access to the payload.",
        source=GUIDE + "inference-recommender-prerequisites.html",
    ),
    "the role's ARN",
    r"arn:aws[a-z\-]*:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+",
    "an ARN such as arn:aws:iam::123456789012:role/recommender",
    max_length=2048,
)
JOB_SECONDS = Range(STOPPING, "the job's duration limit", 1, 18_000, "seconds")
MAX_INVOCATIONS = Range(STOPPING, "the most requests per minute", 1, 30_000, "requests per minute")
MAX_PARALLEL = Range(STOPPING, "the tests at the same time", 1, 10)
MAX_TESTS = Range(STOPPING, "the number of tests", 1, 10)
TAGS = [{"Key": "created-by", "Value": "low-latency-endpoint"}]

Traffic = Sequence[PhaseSettings] | StairsSettings
Shape = TypeVar("Shape", PhaseSettings, StairsSettings)

#: One user, three more each minute: 30 after ten minutes. AWS's guide has 15 to 20 users reach
#: 500 requests per second on ml.c5.large; the test ends by itself when the rate flattens.
DEFAULT_TRAFFIC = (PhaseSettings(users=1, spawn_rate=3, duration=timedelta(minutes=10)),)


def parse_shape(kind: type[Shape], text: str, option: str) -> Shape:
    """A phase or stairs as the AWS CLI writes structures; ``LLR105`` for anything else.

    Examples
    --------
    >>> parse_shape(PhaseSettings, "users=1,spawn-rate=2,duration=2m", "--phase").spawn_rate
    2
    """
    given = [part.partition("=") for part in text.split(",")]
    try:
        return kind.model_validate(
            {name.replace("-", "_"): scalar(value) for name, _, value in given}
        )
    except ValidationError:
        names = (name.replace("_", "-") for name in kind.model_fields)
        raise TRAFFIC_RULE.error(
            got=text, allowed=",".join(f"{name}=..." for name in names), where=option
        ) from None


def parse_limit(text: str, option: str) -> timedelta:
    """How long a job may take, such as ``2h``; ``LLR106`` for anything but whole seconds."""
    limit = duration_of(text)
    if limit is None or not JOB_SECONDS.holds(limit.total_seconds()):
        raise STOPPING.error(
            got=text, allowed="whole seconds with a unit, such as 90m, at most 5h", where=option
        )
    return limit


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
    """What the request of an Advanced job has beyond a Default one's.

    Parameters
    ----------
    threshold : LatencyThreshold
        A test ends when the model's latency reaches it.
    traffic : sequence of PhaseSettings, or StairsSettings
        By default one user and three more each minute, for ten minutes.
    max_invocations : int
        A test ends at this many requests per minute. By default 30,000, the most.
    max_duration : timedelta
        AWS stops the job after this time, whatever is done by then. By default two hours.
    max_parallel : int
        Tests at the same time, each on an endpoint of its own. By default 3.
    continue_when_flat : bool
        Go on when the rate no longer rises with more users. By default the test ends there.
    environment : mapping of str to sequence of str
        Environment variables of the container to try with several values: each combination is a
        test of each type.

    Raises
    ------
    ConfigurationError
        LLR104 for the instance types and variables, LLR105 for more traffic than time, LLR106 for a
        limit or a number of tests out of range.
    """
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
            allowed=f"at most the job's duration limit, {limit:g} seconds",
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
            "EndpointConfigurations": [{"InstanceType": each, **vary} for each in instance_types],
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
    if isinstance(traffic, StairsSettings):
        seconds = int(traffic.duration.total_seconds())
        stairs = {
            "DurationInSeconds": seconds,
            "NumberOfSteps": traffic.steps,
            "UsersPerStep": traffic.users_per_step,
        }
        return {"TrafficType": "STAIRS", "Stairs": stairs}, seconds
    if not traffic:
        raise TRAFFIC_RULE.error(got="no phase", allowed="one phase or several, or stairs")
    phases = [
        {
            "InitialNumberOfUsers": phase.users,
            "SpawnRate": phase.spawn_rate,
            "DurationInSeconds": int(phase.duration.total_seconds()),
        }
        for phase in traffic
    ]
    return {"TrafficType": "PHASES", "Phases": phases}, sum(
        phase["DurationInSeconds"] for phase in phases
    )


def inference_job(
    name: str,
    role_arn: str,
    model: Mapping[str, Any],
    container: Mapping[str, str],
    payload: SamplePayload,
    instance_types: Sequence[str] = (),
    test: Mapping[str, Any] | None = None,
) -> JobRequest:
    """A job of Inference Recommender.

    Parameters
    ----------
    model : mapping
        The model under test and its network, as :mod:`.deployed_model` reads them.
    container : mapping
        As :func:`.describe_container` describes it.
    instance_types : sequence of str
        A Default job without any lets AWS choose.
    test : mapping, optional
        A :func:`load_test` of these types, which makes it an Advanced job. By default it is a
        Default one.

    Raises
    ------
    ConfigurationError
        LLR101 for the job's name, LLR102 for the role, LLR104 for too many instance types.
    """
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
    test = test or {"InputConfig": {}}
    return JobRequest(
        INFERENCE,
        {
            "JobName": JOB_NAME.check(name, "--job-name"),
            "JobType": "Advanced" if test["InputConfig"] else "Default",
            "RoleArn": JOB_ROLE.check(role_arn, "--role-arn"),
            "Tags": TAGS,
            **test,
            "InputConfig": {**model, "ContainerConfig": described, **test["InputConfig"]},
        },
    )


def _check_count(instance_types: Sequence[str], fewest: int = 0) -> None:
    if not fewest <= len(instance_types) <= MAX_TYPES:
        raise TYPES_TO_TRY.error(
            got=f"{len(instance_types)} types",
            allowed=f"{fewest} to {MAX_TYPES}",
            where="--instance-type",
        )


def check_types_to_try(instance_types: Sequence[str], endpoint: EndpointSettings) -> list[str]:
    """Check the types against the endpoint's images before money is spent; doubts are returned.

    Raises
    ------
    ConfigurationError
        LLE405 for a malformed name, LLR104 for a type that is named twice or is burstable, and
        the code of the image rule when the image cannot run on a type.
    """
    doubts: list[str] = []
    twice = [name for name, count in Counter(instance_types).items() if count > 1]
    if twice:
        raise TYPES_TO_TRY.error(
            got=f"{twice[0]} twice", allowed="each type once", where="--instance-type"
        )
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
        for image in images_of(served_containers(endpoint)).values():
            doubts += [
                f"{name}: {doubt}"
                for doubt in check_image_runs_on(image, name, where="--instance-type")
            ]
    return doubts
