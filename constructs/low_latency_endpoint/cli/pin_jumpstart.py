"""``low-latency pin --jumpstart``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ..hugging_face.jumpstart_catalogue import Pinned
    from ..plan.pinned_jumpstart import PinnedJumpStartModel
    from .pin import PinOptions


def pin_models_of_jumpstart(options: PinOptions) -> None:
    """Pin all of them, then write."""
    from ..hugging_face.jumpstart_catalogue import bucket_reader, pin_jumpstart
    from ..hugging_face.lock_file import write_lock
    from .output import print_json, progress_on_terminal
    from .process import check_packages

    check_packages("boto3")
    names = list(dict.fromkeys(options.jumpstart or ()))
    region = _region(options)
    there = _read(options.lock, names)
    with progress_on_terminal("Reading JumpStart") as say:
        read = bucket_reader(region, options.profile)
        done = []
        for name in names:
            say(name)
            done.append(pin_jumpstart(read, name, region, options.version))
    there |= {each.model.model: each.model for each in done}
    changed = write_lock(options.lock, jumpstart=there.values())
    if options.json:
        models = [
            {name: getattr(each.model, name) for name in ("model", "version", "region")}
            for each in done
        ]
        print_json({"lock": str(options.lock), "changed": changed, "models": models})
        return
    for each in done:
        _show(each)
    typer.echo(f"{'wrote' if changed else 'nothing changed in'} {options.lock}", err=True)


def jumpstart_differences(options: PinOptions) -> dict[str, list[str]]:
    """What differs; of all the lock file's models, or of those that are named."""
    from ..hugging_face.jumpstart_catalogue import bucket_reader, differences
    from ..hugging_face.lock_file import read_jumpstart_lock
    from ..plan.pinned_jumpstart import pinned_jumpstart_in
    from .process import check_packages

    there = read_jumpstart_lock(options.lock)
    found = {}
    for name in options.jumpstart or sorted(there):
        pinned = pinned_jumpstart_in(there, name, str(options.lock))
        check_packages("boto3")
        found[name] = list(differences(bucket_reader(pinned.region, options.profile), pinned))
    return found


def has_jumpstart_alone(lock: Path) -> bool:
    """Whether a lock file has models of JumpStart and none of the Hub."""
    from ..hugging_face.lock_file import read_jumpstart_lock, read_lock

    return bool(read_jumpstart_lock(lock)) and not read_lock(lock)


def _region(options: PinOptions) -> str:
    if options.region:
        return options.region
    import boto3

    found = boto3.Session(profile_name=options.profile).region_name
    if not found:
        raise typer.BadParameter("no Region is configured: give --region")
    return str(found)


def _read(lock: Path, names: list[str]) -> dict[str, PinnedJumpStartModel]:
    """What the lock file has; of models that are pinned again, what somebody changed is no matter."""
    from ..hugging_face.lock_file import read_jumpstart_lock

    return read_jumpstart_lock(lock, without=names) if lock.exists() else {}


def _show(done: Pinned) -> None:
    pinned = done.model
    types = sum(len(each.instance_types) for each in pinned.servings)
    typer.echo(f"{pinned.model} {pinned.version} in {pinned.region}: {types} instance types")
    if pinned.default_instance_type:
        typer.echo(f"JumpStart runs it on {pinned.default_instance_type}.")
    for note in done.notes:
        typer.echo(note)
    if pinned.requires_eula:
        typer.echo(f"It asks for an agreement: {pinned.eula_url}")
    accepted = ", accept_eula: true" if pinned.requires_eula else ""
    typer.echo(
        "Next: keep the lock file under version control, and name the model in the settings: "
        f"jumpstart: {{model: {pinned.model}{accepted}}}"
    )
