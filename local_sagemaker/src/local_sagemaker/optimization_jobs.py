"""SageMaker's optimization jobs, of which nothing here has a GPU: the model is copied as it is.

A job takes `RuntimeOptions.optimization_time` by the clock, then its source lies under its output
with a file that says that nothing was quantized, compiled or trained. What became due is done when
somebody next asks for a job. Requests are held against botocore's model, and then against what
AWS's own client refuses before it asks (sagemaker-python-sdk, serve/validations/optimization.py);
as nobody has told how the service answers that, such a job fails at its end, which is the worse.
Model, role and output are looked at where a job's user would learn of them last, but for the role.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from moto.iam.exceptions import NotFoundException
from moto.iam.models import iam_backends
from moto.s3.exceptions import S3ClientError
from moto.s3.models import s3_backends
from moto.utilities.utils import get_partition

from .application import Caller, Operation
from .hosting import Hosting, hosting
from .protocols import Invalid, ServiceError
from .runtime.containers import ModelData

MARKER = "LOCAL_AWS_ONLY_COPIED_THIS_MODEL.json"  # written beside the copied files
_NEURON = ("ml.inf", "ml.trn")
# What the service recommended in recorded answers was the image that the job ran in: tests of
# sagemaker-python-sdk, tests/unit/sagemaker/serve/utils/test_optimize_utils.py. Tags of their kind.
_IMAGES = {
    "neuron": "djl-inference:0.30.0-neuronx-sdk2.20.1",
    "compiled": "djl-inference:0.32.0-tensorrtllm0.12.0-cu125",
    "gpu": "djl-inference:0.36.0-lmi28.0.0-cu130",
}
_Job = dict[str, Any]


def create_optimization_job(caller: Caller, request: _Job) -> dict[str, Any]:
    _check(caller, request)
    state, name = hosting(caller.account, caller.region), request["OptimizationJobName"]
    arn = f"arn:aws:sagemaker:{caller.region}:{caller.account}:optimization-job/{name}"
    now = caller.now()
    with state.lock:
        if name in state.optimizations:
            raise ServiceError(
                f"Job name must be unique within an AWS account and region, and {arn} exists.",
                "ResourceInUse",
            )
        state.optimizations[name] = {
            **{key: value for key, value in request.items() if key != "Tags"},
            "OptimizationJobArn": arn,
            "OptimizationJobStatus": "INPROGRESS",
            "CreationTime": now,
            "OptimizationStartTime": now,
            "LastModifiedTime": now,
        }
        state.tags[arn] = {tag["Key"]: tag["Value"] for tag in request.get("Tags") or ()}
    return {"OptimizationJobArn": arn}


def describe_optimization_job(caller: Caller, request: _Job) -> dict[str, Any]:
    return _find(caller, request)


def stop_optimization_job(caller: Caller, request: _Job) -> None:
    """StopOptimizationJob: what is no longer under way cannot be stopped."""
    job = _find(caller, request)
    if job["OptimizationJobStatus"] != "INPROGRESS":
        raise Invalid(
            "The request was rejected because the optimization job is in status "
            f"{job['OptimizationJobStatus']}."
        )
    _end(job, "STOPPED", caller)


def list_optimization_jobs(caller: Caller, request: _Job) -> dict[str, Any]:
    """ListOptimizationJobs, without pages: NameContains, StatusEquals, and the order."""
    order = {"Name": "OptimizationJobName", "Status": "OptimizationJobStatus"}
    key = order.get(request.get("SortBy") or "", "CreationTime")
    jobs = [
        {**job, "OptimizationTypes": _techniques(job)}
        for job in _settled(caller)
        if (request.get("NameContains") or "") in job["OptimizationJobName"]
        and request.get("StatusEquals") in (None, job["OptimizationJobStatus"])
    ]
    jobs.sort(key=lambda job: job[key])  # of one moment, in the order in which they were made
    if request.get("SortOrder") != "Ascending":
        jobs.reverse()
    return {"OptimizationJobSummaries": jobs[: request.get("MaxResults") or 100]}


OPERATIONS: Mapping[str, Operation] = {
    "CreateOptimizationJob": create_optimization_job,
    "DescribeOptimizationJob": describe_optimization_job,
    "StopOptimizationJob": stop_optimization_job,
    "ListOptimizationJobs": list_optimization_jobs,
}


def _check(caller: Caller, request: _Job) -> None:
    """What a job cannot be started with."""
    source, output = request["ModelSource"], request["OutputConfig"]
    if bool(source.get("S3")) == bool(source.get("SageMakerModel")):
        raise Invalid("One and only one of S3 and SageMakerModel must be specified")
    if output.get("SageMakerModel"):
        raise Invalid("OutputConfig.SageMakerModel is not emulated by the local AWS")
    if not request["OptimizationConfigs"]:
        raise Invalid("At least one OptimizationConfig must be specified")
    for config in request["OptimizationConfigs"]:
        if len([value for value in config.values() if value is not None]) != 1:
            raise Invalid(f"OptimizationConfig is a union: got {', '.join(config) or 'none'}")
    try:
        iam_backends[caller.account]["aws"].get_role(request["RoleArn"].rpartition("/")[2])
    except NotFoundException:
        # CreateTransformJob's: awslabs/predictive-maintenance-using-machine-learning#3.
        raise Invalid(
            f"Could not assume role {request['RoleArn']}. Please ensure that the role exists and "
            "allows principal 'sagemaker.amazonaws.com' to assume the role."
        ) from None


def _find(caller: Caller, request: _Job) -> _Job:
    name = request["OptimizationJobName"]
    for job in _settled(caller):
        if job["OptimizationJobName"] == name:
            return job
    raise ServiceError(f"Could not find optimization job {name}.", "ResourceNotFound")


def _settled(caller: Caller) -> list[_Job]:
    """All jobs, after those are ended that have run long enough."""
    state, now = hosting(caller.account, caller.region), caller.now()
    takes = timedelta(seconds=caller.runtime.options.optimization_time)
    with state.lock:
        for job in state.optimizations.values():
            limit = job["StoppingCondition"].get("MaxRuntimeInSeconds")
            bound = timedelta(seconds=limit) if limit is not None else takes
            if job["OptimizationJobStatus"] == "INPROGRESS" and now >= (
                job["CreationTime"] + min(takes, bound)
            ):
                if bound < takes:  # "SageMaker ends the job": a training job is Stopped then
                    _end(job, "STOPPED", caller)
                else:
                    _complete(job, caller, state)
        return list(state.optimizations.values())


def _end(job: _Job, status: str, caller: Caller) -> None:
    job["OptimizationJobStatus"] = status
    job["OptimizationEndTime"] = job["LastModifiedTime"] = caller.now()


def _complete(job: _Job, caller: Caller, state: Hosting) -> None:
    reason = next(_unsupported(job), "") or _copied(job, caller, state)
    if reason:
        job["FailureReason"] = reason
        _end(job, "FAILED", caller)
        return
    job["OptimizationOutput"] = {"RecommendedInferenceImage": _image(job, caller.region)}
    _end(job, "COMPLETED", caller)


def _techniques(job: _Job) -> list[str]:
    """Such as ``Quantization``; the names of the jobs' list are not documented."""
    return [
        name.removeprefix("Model").removesuffix("Config")
        for config in job["OptimizationConfigs"]
        for name in config
    ]


def _unsupported(job: _Job) -> Iterator[str]:
    """Why the techniques do not go together, or not onto the type."""
    techniques = _techniques(job)
    for name in {name for name in techniques if techniques.count(name) > 1}:
        yield f"Optimizations that use {name} twice are not supported."
    others = [name for name in techniques if name != "Compilation"]
    quantized = {
        value["OverrideEnvironment"].get("OPTION_QUANTIZE")
        for config in job["OptimizationConfigs"]
        for name, value in config.items()
        if name == "ModelQuantizationConfig" and value.get("OverrideEnvironment")
    }
    if job["DeploymentInstanceType"].startswith(_NEURON):
        for name in others:
            yield f"Optimizations that use {name} are not supported on Neuron instances."
        return
    if "Compilation" in techniques:
        for name in set(others) - {"Quantization"}:
            yield f"Optimizations that use Compilation and {name} are not supported for GPU instances."
    elif "smoothquant" in quantized:
        yield "Optimizations that use Quantization:smoothquant must be provided with Compilation."
    for value in quantized - {None, "awq", "fp8", "smoothquant"}:
        yield f"Optimizations that use Quantization:{value} are not supported for GPU instances."


def _image(job: _Job, region: str) -> str:
    for config in job["OptimizationConfigs"]:
        for value in config.values():
            if value.get("Image"):
                return str(value["Image"])
    kind = "compiled" if "Compilation" in _techniques(job) else "gpu"
    if job["DeploymentInstanceType"].startswith(_NEURON):
        kind = "neuron"
    return f"763104351884.dkr.ecr.{region}.amazonaws.com/{_IMAGES[kind]}"


def _copied(job: _Job, caller: Caller, state: Hosting) -> str:
    """Copy the source to the output; gives why not, or nothing."""
    source = _source(job, state)
    backend = s3_backends[caller.account][get_partition(caller.region)]
    bucket, key = _place(source)
    target, prefix = _place(job["OutputConfig"]["S3OutputLocation"])
    prefix = f"{prefix.rstrip('/')}/".lstrip("/")
    try:
        keys = backend.get_bucket(bucket).keys
        found = [name for name in list(keys) if name.startswith(key) and not name.endswith("/")]
    except S3ClientError:
        found = []
    if not found:  # CreateTrainingJob's words: aws/amazon-sagemaker-examples#2489
        return (
            f'No S3 objects found under S3 URL "{source}" given in input data source. Please ensure '
            f"that the bucket exists in the selected region ({caller.region}), that objects exist "
            "under that S3 prefix, and that the role has s3:ListBucket permissions on it."
        )
    try:
        backend.get_bucket(target)
    except S3ClientError:
        return f"The specified bucket does not exist: {target}"
    base = key.rpartition("/")[0]
    for name in found:
        copied = prefix + name[len(base) :].lstrip("/")
        backend.put_object(target, copied, keys[name].value)
    said = {
        "note": "The local AWS copied the model: nothing was quantized, compiled or trained.",
        "job": job["OptimizationJobName"],
        "source": source,
        "optimizations": _techniques(job),
        "files": len(found),
    }
    backend.put_object(target, prefix + MARKER, json.dumps(said, indent=2).encode())
    return ""


def _source(job: _Job, state: Hosting) -> str:
    model_source = job["ModelSource"]
    if model_source.get("S3"):
        return str(model_source["S3"].get("S3Uri") or "")
    name = model_source["SageMakerModel"].get("ModelName") or ""
    data = ModelData.of((state.models.get(name) or {}).get("PrimaryContainer") or {})
    return data.uri if data and data.prefix else f"s3://no uncompressed data of model {name}"


def _place(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key
