"""``low-latency pin``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from ..report.document import Document, Section, Sentence, Table
from .options import Json, argument, flag, grouped, option
from .output import print_document, print_json, progress_on_terminal, say
from .process import check_packages

if TYPE_CHECKING:
    from ..hugging_face.hub_reading import HubReader
    from ..hugging_face.pinning import Pinning
    from ..plan.pinned_model import PinnedModel


@dataclass
class PinOptions:
    """What is pinned, of it, and where it is written."""

    revision: str | None = option(
        "Branch, tag or commit. Default: the one in the lock file, or main for a new model.",
        metavar="REVISION",
    )
    lock: Path = option(
        "Lock file to write. Its other models are kept.", Path("models.lock.yaml"), metavar="FILE"
    )
    check: bool = flag("Compare the lock file with the Hub. Writes nothing.")
    allow_pickle: bool = flag(
        "Accept pickle files if there are no safetensors. Pickle files run code when loaded."
    )
    include: list[str] | None = option(
        "Also include files that match, such as '*Q4_K_M.gguf'. Can be repeated.", metavar="PATTERN"
    )
    exclude: list[str] | None = option(
        "Leave out files that match. Can be repeated.", metavar="PATTERN"
    )
    json: Json = False
    models: list[str] | None = argument(
        "Name of a model on the Hub, such as Qwen/Qwen3-8B.", metavar="MODEL"
    )


@grouped
def pin(options: PinOptions) -> None:
    """Pin models of the Hugging Face Hub: a commit, and each file by size and SHA-256.

    Only this command needs the network. Private and gated models need a token: set HF_TOKEN or run
    hf auth login.

    \b
    Exit codes:
      0  pinned; with --check: nothing differs
      1  with --check: something differs
      2  usage error, or nothing was written

    \b
    Examples:
      low-latency pin Qwen/Qwen3-8B
      low-latency pin Qwen/Qwen3-8B --revision b968826
      low-latency pin Qwen/Qwen3-8B-GGUF --include '*Q4_K_M.gguf'
      low-latency pin --check
    """
    import logging

    names = list(dict.fromkeys(options.models or ()))
    _check_usage(names, options)
    check_packages("huggingface_hub")
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # what it retries, we say
    from ..hugging_face.hub_reading import HubReader

    with progress_on_terminal("Reading the Hub") as progress:
        if options.check:
            differing = _differences(HubReader(progress), names, options.lock, progress)
        else:
            done, changed = _pin(HubReader(progress), names, options, progress)
    if options.check:
        _finish_check(differing, options)
    if options.json:
        pinned = [
            {"model": p.model, "revision": p.revision, "commit": p.commit}
            for p in (each.pinned for each in done)
        ]
        print_json({"lock": str(options.lock), "changed": changed, "models": pinned})
        return
    print_document(Document("", [*map(_section, done)]))
    say(f"{'wrote' if changed else 'nothing changed in'} {options.lock}", err=True)
    say(
        "\nNext: keep it under version control, and name the model in the settings:\n"
        f"  hugging_face: {{model: {names[0]}}}"
    )


def _finish_check(differences: dict[str, list[str]], options: PinOptions) -> NoReturn:
    if options.json:
        print_json({"lock": str(options.lock), "differences": differences})
    else:
        for name, lines in differences.items():
            for line in lines or ["as pinned"]:
                say(f"{name}: {line}")
    raise typer.Exit(1 if any(differences.values()) else 0)


def _check_usage(names: list[str], options: PinOptions) -> None:
    if options.check and (
        options.revision or options.include or options.exclude or options.allow_pickle
    ):
        raise typer.BadParameter("--check compares what the lock file has: give models at most")
    if not names and not options.check:
        raise typer.BadParameter("name a model, or give --check")
    if options.revision and len(names) > 1:
        raise typer.BadParameter("--revision is of one model")
    if options.revision is not None and not options.revision.strip():
        raise typer.BadParameter("--revision is empty")


def _pin(
    hub: HubReader, names: list[str], options: PinOptions, say: Callable[[str], None]
) -> tuple[list[Pinning], bool]:
    """Pin all of them, then write; whether the file differs from before."""
    from ..hugging_face.lock_file import write_lock
    from ..hugging_face.pinning import FileOptions, pin

    there = _read(options.lock, names)
    before = {name: pinned.revision for name, pinned in there.items()}
    chosen = FileOptions(
        allow_pickle=options.allow_pickle,
        include=tuple(options.include or ()),
        exclude=tuple(options.exclude or ()),
    )
    done = [
        pin(hub, name, options.revision or before.get(name, "main"), chosen, say) for name in names
    ]
    there |= {each.pinned.model: each.pinned for each in done}
    changed = write_lock(options.lock, there.values())
    return done, changed


def _read(lock: Path, names: list[str]) -> dict[str, PinnedModel]:
    """What the lock file has; of models that are pinned again, what somebody changed is no matter."""
    from ..errors import ConfigurationError
    from ..hugging_face.lock_file import read_lock

    if not lock.exists():
        return {}
    try:
        return read_lock(lock)
    except ConfigurationError:
        return read_lock(lock, without=names)


def _differences(
    hub: HubReader, names: list[str], lock: Path, say: Callable[[str], None]
) -> dict[str, list[str]]:
    from ..hugging_face.lock_file import read_lock
    from ..hugging_face.pinning import differences
    from ..plan.pinned_model import pinned_in

    there = read_lock(lock)
    return {
        name: list(differences(hub, pinned_in(there, name, str(lock)), say))
        for name in names or sorted(there)
    }


def _section(done: Pinning) -> Section:
    pinned = done.pinned
    weights = [file for file in pinned.files if file.is_weights]
    rest = [file for file in pinned.files if not file.is_weights]
    code = [each for each in rest if each.path.endswith(".py")]
    rows = [
        ["weights", str(len(weights)), _size(pinned.weight_bytes)],
        ["other files", str(len(rest)), _size(sum(each.size for each in rest))],
        ["together", str(len(pinned.files)), _size(pinned.total_bytes)],
    ]
    lines = [f"Left out, {reason}: {_some(paths)}" for reason, paths in _by_reason(done).items()]
    if code:
        lines.append(f"Its own code is served with it: {_some([each.path for each in code])}")
    if any(weight.is_pickle for weight in weights):
        lines.append("Its weights are pickle files: they run code when they are loaded.")
    if done.renamed:
        lines.append(f"The Hub calls it {done.renamed} now; the lock file has the name given here.")
    lines.append(_licence(pinned))
    task = f", {pinned.task}" if pinned.task else ""
    title = f"{pinned.model} {pinned.revision}, commit {pinned.commit[:12]}{task}"
    table = Table(["What", "Files", "Size"], rows)
    return Section(title, [table, *map(Sentence, lines)])


def _by_reason(done: Pinning) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, reason in done.reasons.items():
        found.setdefault(reason, []).append(path)
    return found


def _licence(pinned: PinnedModel) -> str:
    from ..errors import ConfigurationError
    from ..plan.hub_serving import HubModel

    named = pinned.license or "none that the model states"
    gated = " The model is gated." if pinned.gated else ""
    try:
        HubModel(pinned=pinned)
    except ConfigurationError:
        if pinned.license is None:
            return f"Licence: {named}.{gated}"
        return f"Licence: {named}.{gated} Settings have to accept it: accept_license: {named}"
    return f"Licence: {named}.{gated} Settings need not accept it."


def _some(paths: list[str]) -> str:
    more = len(paths) - 3
    return ", ".join(paths[:3]) + (f" and {more} more" if more > 0 else "")


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
