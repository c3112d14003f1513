"""What another lock file of a pinned model of the Hugging Face Hub is, for whoever reviews it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..hugging_face import HUB
from ..hugging_face.lock_file import pinned_model
from ..plan.pinned_model import PinnedFile, PinnedModel
from ..settings.endpoint import EndpointSettings, further_variants
from ..settings.variant_plans import hub_models, served_containers
from .effects import ChangeRow, Effect

_CODE = (
    *(".py", ".pyc", ".so", ".whl", ".egg", ".jar", ".sh", ".joblib", ".dill", ".mar"),
    *(".h5", ".keras", ".pb", ".npy", ".npz", ".plan", ".engine", ".nemo", ".jinja"),
    *("requirements.txt", "serving.properties"),
)
"""Ends of files' names: code, archives of code, graphs and templates that are run, arrays that may
be pickled, what is installed or names code to run."""
_SWITCH = "TRUST_REMOTE_CODE"  # how a server's variable ends that has a model's own code run
_MOST_NAMES = 5  # of files; a comment has other things to say too
_SHORT = 12  # digits of a commit


def lock_changes(
    before: EndpointSettings, after: EndpointSettings, key: str
) -> Iterator[ChangeRow]:
    """What another lock file of the same model changes, beside what the template shows of it."""
    former = _pinned(before)
    for variant, new in _pinned(after).items():
        old = former.get(variant)
        if old is not None and old.model == new.model and old != new:
            yield from _lock_rows(key, old, new)


def lock_warnings(before: EndpointSettings, after: EndpointSettings) -> Iterator[str]:
    """What a reviewer must look at: files that can run code, code that now runs, another licence."""
    there, ran, runs = _pinned(before), _own_code(before), _own_code(after)
    for place, new in _pinned(after).items():
        old = there.get(place)
        known = set(old.files) if old and old.model == new.model else set()
        risky = [file.path for file in new.files if file not in known and _runs(file)]
        if risky:
            yield f"{new.model} gets files that run code when they are loaded: {_names(risky)}"
        if runs[place] and not ran.get(place):
            yield f"the server begins to run the code of {new.model}: {_names(runs[place])}"
        if old and old.model == new.model and old.license != new.license:
            yield f"another licence of {new.model} in the lock file: {_licences(old, new)}"


def hub_warnings(before: EndpointSettings, after: EndpointSettings) -> Iterator[str]:
    """Another host than before, which gets the token of the Hub."""
    former = {group.hub_endpoint for group in hub_models(before)} or {HUB}
    for group in hub_models(after):
        if group.hub_endpoint not in former:
            yield f"the token of the Hub goes to another host: {group.hub_endpoint}"


def _pinned(endpoint: EndpointSettings) -> dict[str, PinnedModel]:
    """The pinned models of an endpoint, by variant; the first variant's has no name."""
    stated = {"": endpoint.hugging_face} | {
        variant.name: variant.settings.hugging_face for variant in further_variants(endpoint)
    }
    return {name: pinned_model(each.lock, each.model) for name, each in stated.items() if each}


def _own_code(endpoint: EndpointSettings) -> dict[str, list[str]]:
    """The code beside the weights that is run, as the environment says; by variant as in _pinned."""
    stated = {"": None} | {each.name: each.settings for each in further_variants(endpoint)}
    found = {}
    for name, pinned in _pinned(endpoint).items():
        variables = served_containers(endpoint, stated[name])[0].environment
        switches = [value for key, value in variables.items() if key.endswith(_SWITCH)]
        runs = any(value.lower() in ("true", "1") for value in switches)
        found[name] = [file.path for file in pinned.files if runs and file.path.endswith(".py")]
    return found


def _runs(file: PinnedFile) -> bool:
    """Whether loading the file, or what serves it, can run code that the file carries."""
    lowered = file._replace(path=file.path.lower())
    return lowered.is_pickle or lowered.path.endswith(_CODE)


def _lock_rows(key: str, old: PinnedModel, new: PinnedModel) -> Iterator[ChangeRow]:
    was = {file.path: file for file in old.files}
    now = {file.path: file for file in new.files}
    other = [path for path, file in now.items() if path in was and was[path] != file]
    if other and old.commit == new.commit:
        text = (
            f"other bytes of {_names(other)} at the same commit {old.commit[:_SHORT]}: a commit of "
            "the Hub has one content, so low-latency pin did not write this lock file, and staging "
            "refuses these files"
        )
        yield ChangeRow(Effect.REFUSED, key, text)
    facts = {
        f"commit {old.commit[:_SHORT]} -> {new.commit[:_SHORT]}": old.commit != new.commit,
        f"files with other content: {_names(other)}": other,
        f"files added: {_names([path for path in now if path not in was])}": now.keys() - was,
        f"files removed: {_names([path for path in was if path not in now])}": was.keys() - now,
        f"pickle files: {_pickles(old)} -> {_pickles(new)}": _pickles(old) != _pickles(new),
        f"licence {_licences(old, new)}": old.license != new.license,
    }
    for name in ("task", "library", "parameters", "config", "gated"):
        facts[f"another {name}"] = getattr(old, name) != getattr(new, name)
    said = [text for text, differs in facts.items() if differs]
    moved = old.prefix != new.prefix  # where the files lie, which the model names
    effect = Effect.DEPLOYMENT if moved else Effect.NOTHING
    if said:
        yield ChangeRow(effect, key, f"another pin of {new.model}: {'; '.join(said)}")


def _pickles(pinned: PinnedModel) -> str:
    return _names([file.path for file in pinned.files if file.is_pickle])


def _licences(old: PinnedModel, new: PinnedModel) -> str:
    return f"{old.license or 'not stated'} -> {new.license or 'not stated'}"


def _names(paths: Sequence[str]) -> str:
    more = len(paths) - _MOST_NAMES
    names = ", ".join(paths[:_MOST_NAMES])
    return f"{names} and {more} more" if more > 0 else names or "none"
