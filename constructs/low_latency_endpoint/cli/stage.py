"""``low-latency stage``: copy pinned models from the Hub into S3, before a deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import typer

from ..errors import rules
from .options import Json, Profile, Region, argument, grouped, option
from .output import print_json, say

if TYPE_CHECKING:
    from ..hugging_face.staging_function.bucket import Bucket, Commit, File
    from ..plan.pinned_model import PinnedModel

_AT_ONCE = 4
_USER = "by-hand"


@dataclass
class StageOptions:
    """Where from, and where to."""

    bucket: str = option("S3 bucket, in the Region of the endpoints.", ..., metavar="BUCKET")
    lock: Path = option("Lock file with the models.", Path("models.lock.yaml"), metavar="FILE")
    json: Json = False
    profile: Profile = None
    region: Region = None
    models: list[str] | None = argument(
        "Name of a model in the lock file. Default: all models.", metavar="MODEL"
    )


@grouped
def stage(options: StageOptions) -> None:
    """Copy pinned models from the Hugging Face Hub into a bucket, and verify each file's hash.

    A deployment does this itself, unless a file takes longer than a Lambda function can run.
    Files already in the bucket are skipped, so you can run it again after an interruption. No stack
    ever removes what you stage here; s3://BUCKET/users/MODEL/COMMIT/by-hand marks it.

    Private and gated models need a token: set HF_TOKEN or run hf auth login. HF_ENDPOINT names a
    mirror.

    \b
    Exit codes:
      0  all files are in the bucket
      1  a file differs from the lock file, or the Hub or AWS refused access
      2  usage error, invalid lock file, or AWS cannot be reached

    \b
    Examples:
      low-latency stage Qwen/Qwen3-8B --bucket my-models
      low-latency stage --bucket my-models --profile production
    """
    from ..account.sessions import aws_errors_in_words, open_clients
    from ..facts.s3_names import check_bucket
    from ..hugging_face.lock_file import read_lock
    from ..hugging_face.staging_function.addresses import StagingFailed
    from ..hugging_face.staging_function.bucket import Bucket
    from ..plan.pinned_model import pinned_in

    locked = read_lock(options.lock)
    chosen = [
        pinned_in(locked, model, str(options.lock))
        for model in dict.fromkeys(options.models or locked)
    ]
    client, region = open_clients(options.profile, options.region)
    check_bucket(f"s3://{options.bucket}", region, "--bucket")
    try:
        with aws_errors_in_words():
            for pinned in chosen:
                # The deployment reads back what is there; here it would cross the internet.
                _stage(pinned, Bucket(client("s3"), options.bucket, reads_back=False))
    except StagingFailed as failed:
        rule = next(rule for rule in rules() if rule.code == failed.code)
        say(f"Error: {rule.error(got=failed.problem, allowed='')}", err=True)
        raise typer.Exit(1) from None
    staged = {pinned.model: f"s3://{options.bucket}/{pinned.prefix}" for pinned in chosen}
    if options.json:
        print_json({"staged": staged})
        return
    for uri in staged.values():
        say(uri)


def _stage(pinned: PinnedModel, bucket: Bucket) -> None:
    from ..hugging_face.staging_function.bucket import Commit, File

    commit = Commit(pinned.model, pinned.commit, pinned.file_list)
    files = [File(*file) for file in pinned.files]
    paths = [file.path for file in files]
    bucket.use(commit, _USER, "low-latency stage")
    bucket.found(commit, paths)
    with _progress(pinned.model, sum(file.size for file in files)) as (advance, say):
        _copy(files, commit, bucket, advance, say)
    bucket.confirm(commit, paths)


def _copy(
    files: list[File],
    commit: Commit,
    bucket: Bucket,
    advance: Callable[[int], None],
    say: Callable[[str], None],
) -> None:
    """A few files at once; when one fails, or somebody interrupts, the others end, too."""
    import os

    from ..hugging_face import HUB
    from ..hugging_face.staging_function.addresses import StagingFailed
    from ..hugging_face.staging_function.hub import Hub

    stopped = Event()

    def left() -> float:
        if stopped.is_set():
            raise StagingFailed("LLE358", "stopped, as another file failed")
        return float("inf")

    hub = Hub(os.environ.get("HF_ENDPOINT") or HUB, _token(), left=left)

    def one(file: File) -> None:
        def read() -> Iterator[bytes]:
            for piece in hub.pieces(commit.model, commit.commit, file.path, file.size):
                advance(len(piece))
                yield piece

        try:
            left()
            copied = bucket.put(commit, file, read)
        except BaseException:
            stopped.set()
            raise
        if not copied:
            advance(file.size)
        say(f"{'copied' if copied else 'there already'}: {file.path}, {file.size} bytes")

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        copies = [pool.submit(one, file) for file in files]
        try:
            failures = [each.exception() for each in copies]
        except BaseException:  # an interruption: what is half written is removed
            stopped.set()
            raise
    failed = [failure for failure in failures if failure is not None]
    # The one that stopped the others, not what it stopped.
    for each in sorted(failed, key=lambda failure: "stopped, as" in str(failure)):
        raise each


def _token() -> str:
    """HF_TOKEN, else what ``hf auth login`` stored, where the library is installed."""
    import os

    given = os.environ.get("HF_TOKEN", "").strip()
    if given:
        return given
    try:
        from huggingface_hub import get_token
    except ImportError:
        return ""
    return get_token() or ""


@contextmanager
def _progress(
    title: str, total: int
) -> Iterator[tuple[Callable[[int], None], Callable[[str], None]]]:
    """A bar on a terminal, a line for each file elsewhere; both on standard error."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda count: None, lambda text: say(f"{title}: {text}", err=True)
        return
    columns: tuple[Any, ...] = (
        *(TextColumn("{task.description}"), BarColumn(), DownloadColumn()),
        *(TransferSpeedColumn(), TimeRemainingColumn()),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count), lambda text: None
