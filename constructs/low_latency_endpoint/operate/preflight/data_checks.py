"""Model data: there, in the stack's region, and of a size that arrives in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ...account.calls import Account
from ...account.sessions import Unreadable
from ...settings import ModelDataSettings
from ..checking.checks import check, guarded, of_part
from ..checking.results import Outcome, failed, passed, unknown, warned
from .context import PlannedEndpoint

#: What is assumed of a download: AWS publishes no rate.
ASSUMED_BYTES_PER_SECOND = 100_000_000
#: Above this AWS's guide advises a longer download timeout than the default.
LARGE_MODEL_BYTES = 40 * 10**9

_MODELS = "/sagemaker/latest/APIReference/API_ContainerDefinition.html"
_LARGE_MODELS = "/sagemaker/latest/dg/large-model-inference-hosting.html"

Find = Callable[[PlannedEndpoint, ModelDataSettings], Iterator[Outcome]]


def _each_data(context: PlannedEndpoint, find: Find) -> Iterator[Outcome]:
    for about, container in context.containers:
        if container.data is not None:
            yield from of_part(about, guarded(find, context, container.data))


def _location(data: ModelDataSettings) -> tuple[str, str]:
    """Bucket and key, or prefix; both empty for a file that the deploy uploads."""
    uri = data.s3 or data.s3_prefix or ""
    # s3://bucket/key, or the https form that SageMaker takes too
    path = uri.removeprefix("s3://")
    if uri.startswith("https://"):
        host, _, path = uri.removeprefix("https://").partition("/")
        label = host.partition(".s3")[0]
        path = path if host.startswith("s3") else f"{label}/{path}"
    bucket, _, key = path.partition("/")
    return bucket, key


def _sizes(account: Account, bucket: str, key: str) -> list[int] | None:
    """Sizes of the object, or of all objects under the prefix; ``None`` when there is none."""
    if key.endswith("/") or not key:
        found = account.every(
            "s3", "list_objects_v2", "Contents", ("NoSuchBucket",), Bucket=bucket, Prefix=key
        )
        return [each["Size"] for each in found or ()] or None
    answer = account.read(
        "s3", "head_object", ("404", "NoSuchKey", "NoSuchBucket"), Bucket=bucket, Key=key
    )
    return None if answer is None else [answer["ContentLength"]]


@check(
    "LLP403",
    "The model data exists",
    how="The object, or something under the prefix.",
    source=_MODELS,
)
def data_exists(context: PlannedEndpoint) -> Iterator[Outcome]:
    """The object is there, or something lies under the prefix."""
    yield from _each_data(context, _exists)


def _exists(context: PlannedEndpoint, data: ModelDataSettings) -> Iterator[Outcome]:
    if data.asset:
        return  # the settings file's own checks found it; the deploy uploads it
    uri = data.s3 or data.s3_prefix
    sizes = _sizes(context.account, *_location(data))
    if sizes is None:
        yield failed(f"there is nothing at {uri}", "Upload the model, or correct the URI.")
    else:
        count = "" if len(sizes) == 1 else f"{len(sizes):,} objects, "
        yield passed(f"{uri}: {count}{_size(sum(sizes))}")


@check("LLP404", "The model data's bucket is in the stack's region", source=_MODELS)
def bucket_region(context: PlannedEndpoint) -> Iterator[Outcome]:
    """SageMaker reads model data of its own region."""
    yield from _each_data(context, _in_region)


def _in_region(context: PlannedEndpoint, data: ModelDataSettings) -> Iterator[Outcome]:
    bucket, _ = _location(data)
    if not bucket:
        return
    region = _region(context.account, bucket)
    if region is None:
        yield failed(f"there is no bucket {bucket}", "Create it, or correct the URI.")
    elif region == context.account.region:
        yield passed(f"{bucket} is in {region}")
    else:
        yield failed(
            f"{bucket} is in {region}, the endpoint in {context.account.region}",
            f"Copy the model to a bucket in {context.account.region}.",
        )


def _region(account: Account, bucket: str) -> str | None:
    missing = ("404", "NoSuchBucket")
    try:
        answer = account.read("s3", "head_bucket", missing, Bucket=bucket)
    except Unreadable as refusal:
        if region := refusal.headers.get("x-amz-bucket-region"):
            return region  # S3 tells it whoever asks
        raise
    if answer is None:
        return None
    if answer.get("BucketRegion"):
        return str(answer["BucketRegion"])
    located = account.read("s3", "get_bucket_location", missing, Bucket=bucket)
    region = str((located or {}).get("LocationConstraint") or "us-east-1")
    return {"EU": "eu-west-1"}.get(region, region)  # the oldest spelling of Ireland


@check(
    "LLP405",
    "The model data arrives in time",
    how="At an assumed 100 MB/s within `model_data_download_timeout`; only warns.",
    source=_LARGE_MODELS,
)
def download_time(context: PlannedEndpoint) -> Iterator[Outcome]:
    """Size against the download timeout, at an assumed rate, and against the volume."""
    yield from _each_data(context, _in_time)


def _in_time(context: PlannedEndpoint, data: ModelDataSettings) -> Iterator[Outcome]:
    multi_model = any(each.multi_model and each.data == data for _, each in context.containers)
    if multi_model:
        return  # its models are fetched when they are called
    size = _total(context, data)
    if size is None:
        yield unknown("the size is not known: see LLP403")
        return
    volume = context.settings.volume_size_gib
    if volume is not None and size > volume * 2**30:
        yield failed(
            f"{_size(size)} do not fit the volume of {volume} GiB",
            "Raise `volume_size_gib`; an archive also needs room for what it holds.",
            about="volume",
        )
    seconds = size / ASSUMED_BYTES_PER_SECOND
    assumed = (
        f"{_size(size)}, {seconds:,.0f} s at an assumed {ASSUMED_BYTES_PER_SECOND // 10**6} MB/s"
    )
    timeout = context.settings.model_data_download_timeout
    if timeout is None and size > LARGE_MODEL_BYTES:
        yield warned(
            f"{assumed}, and no timeout is stated",
            "State `model_data_download_timeout`, up to 1h: AWS advises it above 40 GB.",
        )
    elif timeout is not None and seconds > timeout.total_seconds():
        yield warned(
            f"{assumed}, the timeout is {timeout.total_seconds():,.0f} s",
            "Raise `model_data_download_timeout`, up to 1h, or give the model "
            "uncompressed (`s3_prefix`).",
        )
    else:
        limit = "SageMaker's timeout" if timeout is None else f"{timeout.total_seconds():,.0f} s"
        yield passed(f"{assumed}; {limit} allowed")


def _total(context: PlannedEndpoint, data: ModelDataSettings) -> int | None:
    if data.asset:
        path = Path(data.asset)
        return path.stat().st_size if path.is_file() else None
    sizes = _sizes(context.account, *_location(data))
    return None if sizes is None else sum(sizes)


def _size(count: float) -> str:
    """Bytes for people.

    >>> _size(900), _size(268_000_000), _size(41_500_000_000)
    ('900 B', '268 MB', '41.5 GB')
    """
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} GB" if count < 1000 else f"{count:,.0f} GB"


ENDPOINT_CHECKS = (data_exists, bucket_region, download_time)
