"""Which files of a pinned model each call of the staging function copies, and how many at once."""

from __future__ import annotations

from .hugging_face_rules import FILE_TOO_LARGE, TOO_MANY_FILES
from .pinned_model import PinnedFile, PinnedModel

GB = 10**9
SECONDS_OF_A_CALL = 800
"""Of the function's 900 s, without its start, its answer and a last connection. Lambda's guide gives
no more (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html); its API model in
botocore 1.44.8 says 1,800 s, which nobody has seen yet."""
ASSUMED_BYTES_PER_SECOND = 25 * 10**6
"""From the Hub's CDN through one function into S3. An assumption, not measured on AWS; the function
writes into its log what it was."""
LARGEST_FILE = SECONDS_OF_A_CALL * ASSUMED_BYTES_PER_SECOND
BYTES_OF_A_CALL = 8 * GB
"""So that at the assumed rate a call takes five minutes, and at a third of it still ends in time."""
FILES_OF_A_CALL = 200
FILES_OF_A_MODEL = 1000
"""The names of all stand in one event for the function, which Lambda takes up to 256 KiB:
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html. An update's has the former
names, too."""
CALLS_AT_ONCE = 8
"""Of accounts that are new, with 10 functions at once, this leaves some."""


def staging_calls(
    pinned: PinnedModel, *, staged_before: bool = False
) -> tuple[tuple[PinnedFile, ...], ...]:
    """A model's files in order, packed into calls."""
    if len(pinned.files) > FILES_OF_A_MODEL:
        raise TOO_MANY_FILES.error(
            got=len(pinned.files), allowed=f"up to {FILES_OF_A_MODEL}", where=pinned.model
        )
    calls: list[list[PinnedFile]] = []
    room = 0
    for file in pinned.files:
        if file.size > LARGEST_FILE and not staged_before:
            raise FILE_TOO_LARGE.error(
                got=f"{file.path}: {file.size / GB:.1f} GB",
                allowed=f"up to {LARGEST_FILE / GB:.0f} GB: 15 minutes at an assumed "
                f"{ASSUMED_BYTES_PER_SECOND / 10**6:.0f} MB/s",
                where=pinned.model,
            )
        if not calls or file.size > room or len(calls[-1]) == FILES_OF_A_CALL:
            calls.append([])
            room = BYTES_OF_A_CALL
        calls[-1].append(file)
        room -= file.size
    return tuple(tuple(call) for call in calls)
