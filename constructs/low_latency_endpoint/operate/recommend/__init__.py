"""AWS's own recommendation jobs, asked from the settings file and read back into it.

Inference Recommender tests the deployed model on instance types (:mod:`.job_requests`,
:mod:`.jobs`, :mod:`.results`). Requests are pure functions of their options; nothing here prints
or asks.
"""

from __future__ import annotations

from .adopting import Adoption, adopt, chosen
from .container import ContainerDescription, describe_container
from .deployed_model import DeployedModel, find_deployed_model, read_model
from .job_requests import (
    LoadTest,
    ModelSource,
    RecommendationRequest,
    VpcConfig,
    check_types_to_try,
    job_request,
)
from .jobs import JobSummary, newest_jobs, read, start, stop, wait
from .payload import SamplePayload, sample_payload, upload
from .results import Job, Recommendation, read_job
from .scaling import ScalingAdvice, ask_for_scaling
from .threshold import LatencyThreshold, parse_threshold, threshold_of
from .traffic import DEFAULT_TRAFFIC, Phase, Stairs, parse_phases, parse_stairs

__all__ = [
    "DEFAULT_TRAFFIC",
    "Adoption",
    "ContainerDescription",
    "DeployedModel",
    "Job",
    "JobSummary",
    "LatencyThreshold",
    "LoadTest",
    "ModelSource",
    "Phase",
    "Recommendation",
    "RecommendationRequest",
    "SamplePayload",
    "ScalingAdvice",
    "Stairs",
    "VpcConfig",
    "adopt",
    "ask_for_scaling",
    "check_types_to_try",
    "chosen",
    "describe_container",
    "find_deployed_model",
    "job_request",
    "newest_jobs",
    "parse_phases",
    "parse_stairs",
    "parse_threshold",
    "read",
    "read_job",
    "read_model",
    "sample_payload",
    "start",
    "stop",
    "threshold_of",
    "upload",
    "wait",
]
