"""What another lock file does to a model of the Hugging Face Hub: commit, files, licence, pickles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...hugging_face.hub_options import HuggingFaceSettings
from ...hugging_face.lock_file import pinned_model
from ...options.effects import Effect
from ...plan.pinned_model import PinnedFile, PinnedModel
from ..endpoint import EndpointSettings
from ..variants import further_variants
from .effects import Consequence

_MOST_NAMES = 5  # of files; a comment has other things to say too
_SHORT = 12  # digits of a commit
_PINNED_ALIKE = Consequence(Effect.NOTHING, "the model is pinned as before")


def lock_consequences(
    before: HuggingFaceSettings, after: HuggingFaceSettings, key: str
) -> list[Consequence]:
    """What another lock file does to an endpoint whose settings name the same model."""
    old, new = (pinned_model(each.lock, each.model) for each in (before, after))
    found = [each._replace(endpoints=(key,)) for each in _changes(old, new)]
    return found or [_PINNED_ALIKE]


def lock_warnings(before: EndpointSettings, after: EndpointSettings) -> Iterator[str]:
    """What a reviewer must look at: files that can run code, and another licence."""
    there = _pinned(before)
    for place, new in _pinned(after).items():
        old = there.get(place)
        known = {each.path for each in old.files} if old and old.model == new.model else set()
        if risky := [each.path for each in new.files if each.path not in known and _runs(each)]:
            yield f"{new.model} gets files that run code when they are loaded: {_names(risky)}"
        if old and old.model == new.model and old.license != new.license:
            yield f"another licence of {new.model} in the lock file: {_licences(old, new)}"


def _pinned(endpoint: EndpointSettings) -> dict[str, PinnedModel]:
    """The pinned models of an endpoint, by variant; the first variant's has no name."""
    stated = {"": endpoint.hugging_face} | {
        each.name: each.settings.hugging_face for each in further_variants(endpoint)
    }
    return {name: pinned_model(each.lock, each.model) for name, each in stated.items() if each}


def _runs(file: PinnedFile) -> bool:
    """Whether loading the file can run code that the file carries."""
    return file.is_pickle or file.path.endswith(".py")


def _changes(old: PinnedModel, new: PinnedModel) -> Iterator[Consequence]:
    if old == new:
        return
    was, now = ({each.path: each for each in one.files} for one in (old, new))
    other = [path for path, file in now.items() if path in was and was[path] != file]
    if other and old.commit == new.commit:
        yield Consequence(
            Effect.REFUSED,
            f"other bytes of {_names(other)} at the same commit {old.commit[:_SHORT]}: a commit of "
            "the Hub has one content, so low-latency pin did not write this lock file, and staging "
            "refuses these files",
        )
    facts = {
        f"commit {old.commit[:_SHORT]} -> {new.commit[:_SHORT]}": old.commit != new.commit,
        f"files with other content: {_names(other)}": other,
        f"files added: {_names([each for each in now if each not in was])}": now.keys() - was,
        f"files removed: {_names([each for each in was if each not in now])}": was.keys() - now,
        f"pickle files: {_pickles(old)} -> {_pickles(new)}": _pickles(old) != _pickles(new),
        f"licence {_licences(old, new)}": old.license != new.license,
    }
    facts |= {
        f"another {name}": getattr(old, name) != getattr(new, name)
        for name in ("task", "library", "parameters", "config", "gated")
    }
    if said := [text for text, differs in facts.items() if differs]:
        moved = old.prefix != new.prefix  # where the files lie, which the model names
        effect = Effect.DEPLOYMENT if moved else Effect.NOTHING
        yield Consequence(effect, f"another pin of {new.model}: {'; '.join(said)}")


def _pickles(pinned: PinnedModel) -> str:
    return _names([each.path for each in pinned.files if each.is_pickle])


def _licences(old: PinnedModel, new: PinnedModel) -> str:
    return f"{old.license or 'not stated'} -> {new.license or 'not stated'}"


def _names(paths: Sequence[str]) -> str:
    more = len(paths) - _MOST_NAMES
    named = ", ".join(paths[:_MOST_NAMES])
    return f"{named} and {more} more" if more > 0 else named or "none"
