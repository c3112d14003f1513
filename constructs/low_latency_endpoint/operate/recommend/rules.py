"""What AWS's recommendation jobs can be asked for, as coded limits and rules (LLE970 to LLE979)."""

from __future__ import annotations

from ...errors import rule
from ...plan.limits import API, GUIDE, Choice, Pattern, Range
from ...plan.recommendation_limits import (
    MAX_TYPES,
    PHASE_SPAWN_RATE,
    PHASE_USERS,
    STAIR_STEPS,
    STAIR_USERS,
    TRAFFIC_RULE,
    TRAFFIC_SECONDS,
    TYPES_TO_TRY,
)

__all__ = [
    "FRAMEWORK",
    "GENERATIVE_FORM",
    "GENERATIVE_TYPES",
    "GOAL",
    "JOB_NAME",
    "JOB_ROLE",
    "JOB_SECONDS",
    "MAX_INVOCATIONS",
    "MAX_PARALLEL",
    "MAX_TESTS",
    "MAX_TYPES",
    "MODEL_TO_TEST",
    "NOT_ADOPTABLE",
    "NO_SUCH_RESULT",
    "PHASE_SPAWN_RATE",
    "PHASE_USERS",
    "SAMPLE_PAYLOAD",
    "STAIR_STEPS",
    "STAIR_USERS",
    "THRESHOLD_FORM",
    "TOKENS",
    "TRAFFIC_FORM",
    "TRAFFIC_SECONDS",
    "TYPES_TO_TRY",
]

LOAD_TEST = GUIDE + "inference-recommender-load-test.html"
INPUT = API + "RecommendationJobInputConfig.html"
GENERATIVE = GUIDE + "generative-ai-inference-recommendations.html"

JOB_NAME = Pattern(
    rule(
        "LLE970",
        "the name of a recommendation job has a form that AWS refuses",
        mend="Choose another --job-name, or leave it out.",
        source=API + "CreateInferenceRecommendationsJob.html",
    ),
    "the job's name",
    r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}",
    "letters, digits and inner hyphens, at most 63 characters",
)
JOB_ROLE = Pattern(
    rule(
        "LLE971",
        "a recommendation job needs a role that makes endpoints in your name",
        mend="Pass --role-arn. The deployed model's own role may only fetch its model; AWS asks "
        "for one with AmazonSageMakerFullAccess and access to the payload.",
        source=GUIDE + "inference-recommender-prerequisites.html",
    ),
    "the role's ARN",
    r"arn:aws[a-z\-]*:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+",
    "an ARN such as arn:aws:iam::123456789012:role/recommender",
    max_length=2048,
)
MODEL_TO_TEST = rule(
    "LLE972",
    "a recommendation job tests one model that exists",
    mend="Deploy the stack first (make deploy), or pass --model-name or --model-package-arn.",
    source=INPUT,
)
TRAFFIC_FORM = TRAFFIC_RULE

_STOPPING = rule(
    "LLE975",
    "a limit of the job is out of range",
    mend="Change --max-duration, --max-invocations, --max-parallel or --latency-threshold.",
    source=LOAD_TEST,
)
JOB_SECONDS = Range(_STOPPING, "the job's duration limit", 1, 18_000, "seconds")
MAX_INVOCATIONS = Range(_STOPPING, "the most requests per minute", 1, 30_000, "requests per minute")
MAX_PARALLEL = Range(_STOPPING, "the tests at the same time", 1, 10)
MAX_TESTS = Range(_STOPPING, "the number of tests", 1, 10)
THRESHOLD_FORM = _STOPPING

SAMPLE_PAYLOAD = rule(
    "LLE976",
    "a recommendation job sends a sample payload: a .tar.gz in S3",
    mend="Pass --sample-payload s3://bucket/payload.tar.gz; or a file, or nothing for the "
    "warm-up's payload of the settings, with --upload-to s3://bucket/prefix/.",
    source=API + "RecommendationJobPayloadConfig.html",
)
NO_SUCH_RESULT = rule(
    "LLE977",
    "the job has no such result",
    mend="Choose a number of the job's table: low-latency recommend SETTINGS --job NAME. Only a "
    "completed job has results.",
)
NOT_ADOPTABLE = rule(
    "LLE978",
    "the result cannot become the settings' choice",
    mend="Choose another result, or change the settings by hand.",
)
_GENERATIVE = rule(
    "LLE979",
    "a job for a generative model cannot be asked like this",
    mend="See low-latency recommend-generative --help.",
    source=GENERATIVE,
)
GENERATIVE_FORM = _GENERATIVE
GOAL = Choice(_GENERATIVE, "the goal", ("ttft-ms", "throughput", "cost"))
FRAMEWORK = Choice(_GENERATIVE, "the serving framework", ("LMI", "VLLM"))
GENERATIVE_TYPES = Range(_GENERATIVE, "the number of instance types", 0, 3)
TOKENS = Range(_GENERATIVE, "a number of tokens or requests", 1, 1_000_000_000)
