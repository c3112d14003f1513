"""What Inference Recommender's load tests take: instance types to try, and traffic."""

from __future__ import annotations

from ..errors import rule
from .limit_kinds import Range
from .limits import API, GUIDE

MAX_TYPES = 10
TYPES_TO_TRY = rule(
    "LLR104",
    "the job does not take these instance types",
    fix="Name others with --instance-type, once for each, or in recommendation.instance_types.",
    source=API + "RecommendationJobInputConfig.html",
)
TRAFFIC_RULE = rule(
    "LLR105",
    "the traffic of a load test is out of range",
    fix="Give --phase users=1,spawn-rate=1,duration=2m (once for each phase) or --stairs "
    "steps=5,users-per-step=3,duration=10m, or the same in the settings.",
    source=GUIDE + "inference-recommender-load-test.html",
)
TRAFFIC_SECONDS = Range(TRAFFIC_RULE, "a phase's length", 120, 3600, "seconds")
PHASE_USERS = Range(TRAFFIC_RULE, "the users a phase starts with", 1, 3)
PHASE_SPAWN_RATE = Range(TRAFFIC_RULE, "the users added each minute", 0, 3)
STAIR_STEPS = Range(TRAFFIC_RULE, "the number of steps", 1, None)
STAIR_USERS = Range(TRAFFIC_RULE, "the users added at each step", 1, 3)
