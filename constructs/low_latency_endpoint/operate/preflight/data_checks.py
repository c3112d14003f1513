"""Model data: there, in the stack's region, and of a size that arrives in time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...account.calls import Account
from ...account.keys import described_key
from ...account.sessions import Unreadable
from ...facts.durations import seconds_of
from ...report.numbers import readable
from ...settings import ModelDataSettings
from ..checking.checks import Outcome, endpoint_check, failed, passed, unknown, warned
from .context import PlannedEndpoint, PlannedModel

#: What is assumed of a download: AWS publishes no rate.
ASSUMED_BYTES_PER_SECOND = 100_000_000
#: Above this AWS's guide advises a longer download timeout than the default.
LARGE_MODEL_BYTES = 40 * 10**9

_MODELS = "/sagemaker/latest/APIReference/API_ContainerDefinition.html"
_LARGE_MODELS = "/sagemaker/latest/dg/large-model-inference-hosting.html"
_NO_OBJECT = ("404", "NoSuchKey", "NoSuchBucket")


def _each_data(context: PlannedEndpoint) -> Iterator[tuple[str, PlannedModel, ModelDataSettings]]:
    for model in context.models:
        for about, container in model.parts:
            if container.data is not None:
                yield about, model, container.data


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


def _sizes(account: Account, bucket: str, key: str) -> dict[str, int]:
    """The object, or all objects under the prefix, by key with their sizes; empty without any."""
    if key.endswith("/") or not key:
        found = account.every(
            "s3", "list_objects_v2", "Contents", ("NoSuchBucket",), Bucket=bucket, Prefix=key
        )
        return {each["Key"]: each["Size"] for each in found}
    answer = _head(account, bucket, key)
    return {} if answer is None else {key: answer["ContentLength"]}


def _head(account: Account, bucket: str, key: str) -> Mapping[str, Any] | None:
    return account.read("s3", "head_object", _NO_OBJECT, Bucket=bucket, Key=key)


@endpoint_check(
    "LLP403",
    "The model data exists, and the model's role can decrypt it",
    how="Looks for the object, or for any under the prefix. Compares the KMS key of the "
    "largest object with the keys that the stack lets the role decrypt with.",
    source=_MODELS,
    each=_each_data,
)
def data_exists(
    context: PlannedEndpoint, model: PlannedModel, data: ModelDataSettings
) -> Outcome | None:
    if data.asset:
        return None  # the settings file's own checks found it; the deploy uploads it
    uri = data.s3 or data.s3_prefix
    bucket, key = _location(data)
    sizes = _sizes(context.account, bucket, key)
    if not sizes:
        return failed(f"there is nothing at {uri}", "Upload the model, or correct the URI.")
    several = len(sizes) > 1
    found = f"{uri}: {f'{len(sizes):,} objects, ' if several else ''}{_size(sum(sizes.values()))}"
    largest = _head(context.account, bucket, max(sizes, key=lambda size: sizes[size])) or {}
    used = largest.get("SSEKMSKeyId")
    if used is None:
        return passed(found)
    encrypted = f"{found}, {'the largest ' if several else ''}encrypted with {used}"
    return _decrypted(context, used, encrypted, _keys_of_role(context, model))


def _keys_of_role(context: PlannedEndpoint, model: PlannedModel) -> set[str]:
    """The keys that the stack lets the model's role decrypt with: of its data and what it writes."""
    settings = context.settings
    of_data = [container.data.kms_key_arn for container in model.containers if container.data]
    of_written = [
        each.kms_key_arn or context.stack.settings.safeguards.kms_key_arn
        for each in (settings.data_capture, settings.core_dump)
        if each
    ]
    return {key for key in (*of_data, *of_written) if key}


def _decrypted(
    context: PlannedEndpoint, used: str, encrypted: str, keys: Collection[str]
) -> Outcome:
    """Whether the role may decrypt with a key; the account's own AWS managed one asks for no right.

    See https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
    """
    if any(arn == used or arn.endswith(f":key/{used}") for arn in keys):
        return passed(f"{encrypted}, with which the model's role may decrypt")
    if _owner(used) not in ("", context.account.account_id()):
        fix = (
            f"Set `data: {{kms_key_arn: '{used}'}}`, and let the key's policy name this account; "
            "what another account's AWS managed key encrypts is not for this one."
        )
        return _without_right(context, encrypted, keys, fix)
    key = described_key(context.account, used)
    if key is None:
        return failed(
            f"{encrypted}, and there is no such key",
            "Upload the model again, encrypted with a key that exists.",
        )
    if key.get("KeyManager") == "AWS":
        return passed(f"{encrypted}, which AWS manages for the whole account")
    fix = f"Set `data: {{kms_key_arn: '{key['Arn']}'}}`."
    return _without_right(context, encrypted, keys, fix)


def _owner(key: str) -> str:
    """The account in a key's ARN; empty for an ID, which is of the account that was asked."""
    return key.split(":")[4] if key.startswith("arn:") else ""


def _without_right(
    context: PlannedEndpoint, encrypted: str, keys: Collection[str], fix: str
) -> Outcome:
    """The stack lets the role decrypt with other keys only; a stated role may have more rights."""
    role, allowed = context.settings.role_arn, ", ".join(sorted(keys)) or "no key"
    evidence = f"{encrypted}, and the stack lets the model's role decrypt with {allowed}"
    if role is None:
        return failed(evidence, fix)
    return warned(f"{evidence}; what else {role} may, is not looked up", fix)


@endpoint_check(
    "LLP404", "The model data's bucket is in the stack's region", source=_MODELS, each=_each_data
)
def bucket_region(
    context: PlannedEndpoint, _: PlannedModel, data: ModelDataSettings
) -> Outcome | None:
    bucket = _location(data)[0]
    if not bucket:
        return None
    region = _region(context.account, bucket)
    if region is None:
        return failed(f"there is no bucket {bucket}", "Create the bucket, or correct the URI.")
    if region == context.account.region:
        return passed(f"{bucket} is in {region}")
    return failed(
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


@endpoint_check(
    "LLP405",
    "The model data downloads in time",
    how="Assumes 100 MB/s, and compares with `model_data_download_timeout`. Only warns.",
    source=_LARGE_MODELS,
    each=_each_data,
)
def download_time(
    context: PlannedEndpoint, _: PlannedModel, data: ModelDataSettings
) -> Iterator[Outcome]:
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
            f"{_size(size)} do not fit on the volume of {volume} GiB",
            "Raise `volume_size_gib`; an archive also needs room for its contents.",
            about="volume",
        )
    seconds = size / ASSUMED_BYTES_PER_SECOND
    assumed = (
        f"{_size(size)}, {seconds:,.0f} s at an assumed {ASSUMED_BYTES_PER_SECOND // 10**6} MB/s"
    )
    stated = context.settings.model_data_download_timeout
    timeout = None if stated is None else seconds_of(stated)
    if timeout is None and size > LARGE_MODEL_BYTES:
        yield warned(
            f"{assumed}, and no timeout is stated",
            "Set `model_data_download_timeout`, up to 1h: AWS advises it above 40 GB.",
        )
    elif timeout is not None and seconds > timeout:
        yield warned(
            f"{assumed}, the timeout is {timeout:,.0f} s",
            "Raise `model_data_download_timeout`, up to 1h, or give the model "
            "uncompressed (`s3_prefix`).",
        )
    else:
        limit = "SageMaker's timeout" if timeout is None else f"{timeout:,.0f} s"
        yield passed(f"{assumed}; {limit} allowed")


def _total(context: PlannedEndpoint, data: ModelDataSettings) -> int | None:
    if data.asset:
        path = Path(data.asset)
        return path.stat().st_size if path.is_file() else None
    sizes = _sizes(context.account, *_location(data))
    return sum(sizes.values()) if sizes else None


def _size(count: float) -> str:
    """Bytes for people.

    >>> _size(900), _size(268_000_000), _size(41_500_000_000)
    ('900 B', '268 MB', '41.5 GB')
    """
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{readable(count, 3)} {unit}"
        count /= 1000
    return f"{readable(count, 3)} GB" if count < 1000 else f"{count:,.0f} GB"
