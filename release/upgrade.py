"""What an upgrade of the library does to stacks that are deployed: a page for each release.

The apps of the old version stand for users' code. Each is synthesised with the old wheel and with
the new one, and the two templates are compared.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.metadata import parse_email

from .stack_changes import Effect, ResourceChange, changes_of
from .synthesis import Synthesised, apps_of, synthesise
from .wheels import metadata_of, unpack

#: What users of a resource notice, where it is more than CloudFormation's word for it.
NOTICED = {
    ("AWS::SageMaker::Endpoint", Effect.REPLACED): "callers of the old name fail",
    ("AWS::SageMaker::Endpoint", Effect.DELETED): "its callers fail",
    ("AWS::SageMaker::EndpointConfig", Effect.REPLACED): "a guarded deployment: new instances",
    ("AWS::EC2::VPCEndpoint", Effect.REPLACED): "callers' connections through it end",
    ("AWS::EC2::VPCEndpoint", Effect.DELETED): "callers' connections through it end",
    ("AWS::CloudWatch::Alarm", Effect.REPLACED): "it begins without a state",
}
_REFUSED = "CloudFormation refuses the update: the new one would have the old one's name"
_WORDS = {
    Effect.REFUSED: "the update fails and is rolled back; nothing changes",
    Effect.REPLACED: "a new one is made, then the old one is deleted",
    Effect.DELETED: "the new version does not have it",
    Effect.MAY_BE_REPLACED: "the function of a custom resource decides, or a property's value",
    Effect.UPDATED: "changed while it is used",
    Effect.ADDED: "new beside what is there",
    Effect.LEFT: "the same in both templates",
}


@dataclass(frozen=True)
class AppUpgrade:
    """What an upgrade does to one app.

    Parameters
    ----------
    changed_code
        Whether the app's own code had to change for the new version.
    error
        Why nothing could be compared.
    """

    name: str
    changes: tuple[ResourceChange, ...] = ()
    changed_code: bool = False
    error: str = ""

    @property
    def counts(self) -> Counter[Effect]:
        """How many resources each effect has."""
        return Counter(change.effect for change in self.changes)


def upgrade_page(old_wheel: Path, new_wheel: Path, old_checkout: Path, new_checkout: Path) -> str:
    """Write the page of an upgrade.

    Parameters
    ----------
    old_checkout
        Whose ``endpoint.yaml`` and ``examples/`` stand for what is deployed.
    new_checkout
        Whose files are taken for an app that the new version does not understand.
    """
    versions = [
        str(parse_email(metadata_of(each))[0]["version"]) for each in (old_wheel, new_wheel)
    ]
    with tempfile.TemporaryDirectory(prefix="upgrade-") as name:
        folder = Path(name)
        old = unpack(old_wheel, folder / "old-library")
        new = unpack(new_wheel, folder / "new-library")
        apps, changed = apps_of(old_checkout), apps_of(new_checkout)
        before = synthesise(apps.values(), old, folder / "before")
        after = synthesise(apps.values(), new, folder / "after")
        failed = [
            changed[key]
            for key, path in apps.items()
            if after[path.name].error and key in changed and not before[path.name].error
        ]
        rewritten = synthesise(failed, new, folder / "rewritten") if failed else {}
    upgrades = [
        _upgrade(key, before[path.name], after[path.name], rewritten.get(path.name))
        for key, path in apps.items()
    ]
    return page(versions[0], versions[1], upgrades)


def _upgrade(
    name: str, before: Synthesised, after: Synthesised, rewritten: Synthesised | None
) -> AppUpgrade:
    if before.error:
        return AppUpgrade(name, error=f"the old version does not synthesise it: {before.error}")
    changed_code = bool(after.error)
    if changed_code:
        if rewritten is None or rewritten.error:
            return AppUpgrade(name, changed_code=True, error=after.error)
        after, error = rewritten, after.error
    else:
        error = ""
    nothing: dict[str, dict[str, object]] = {"Resources": {}}
    changes = tuple(
        change
        for stack in {**before.templates, **after.templates}
        for change in changes_of(
            before.templates.get(stack, nothing), after.templates.get(stack, nothing)
        ).values()
    )
    return AppUpgrade(name, changes, changed_code, error)


def first_release(version: str) -> str:
    """The page of the first release."""
    return (
        f"# Upgrade to {version}\n\n"
        "This is the first release: there is no version to upgrade from.\n"
    )


def page(old: str, new: str, upgrades: Sequence[AppUpgrade]) -> str:
    """Write down what was found, as Markdown."""
    return "\n".join(_lines(old, new, upgrades)) + "\n"


def _lines(old: str, new: str, upgrades: Sequence[AppUpgrade]) -> Iterator[str]:
    yield f"# Upgrade from {old} to {new}"
    yield ""
    yield _verdict(upgrades)
    yield ""
    yield (
        "The examples of the old version were synthesised with both versions of the library, and "
        "their templates compared. Your own app can differ: run `cdk diff` before you deploy."
    )
    yield ""
    yield "| App | " + " | ".join(effect.value.capitalize() for effect in Effect) + " |"
    yield "|---|" + "---:|" * len(Effect)
    for each in upgrades:
        if not each.changes and each.error:
            yield f"| {each.name} | " + " | ".join("?" for _ in Effect) + " |"
        else:
            counts = " | ".join(str(each.counts[effect]) for effect in Effect)
            yield f"| {each.name} | {counts} |"
    yield ""
    for effect in Effect:
        yield f"- **{effect.value}**: {_WORDS[effect]}"
    for each in upgrades:
        yield from _details(each)


def _verdict(upgrades: Sequence[AppUpgrade]) -> str:
    parts = []
    for effect in (Effect.REFUSED, Effect.REPLACED, Effect.DELETED, Effect.MAY_BE_REPLACED):
        number = sum(each.counts[effect] for each in upgrades)
        apps = sum(bool(each.counts[effect]) for each in upgrades)
        if number:
            verb = "is" if number == 1 and effect is not Effect.MAY_BE_REPLACED else "are"
            verb = "" if effect is Effect.MAY_BE_REPLACED else f" {verb}"
            noun = "resource" if number == 1 else "resources"
            parts.append(
                f"{number} {noun}{verb} {effect.value} (in {apps} of {len(upgrades)} apps)"
            )
    unknown = sum(bool(each.error) and not each.changes for each in upgrades)
    if unknown:
        parts.append(f"{unknown} of {len(upgrades)} apps could not be compared")
    changed = sum(each.changed_code for each in upgrades)
    if changed:
        parts.append(f"{changed} of {len(upgrades)} apps need other code")
    if not parts:
        return "**No resource is replaced or deleted.**"
    return "**" + "; ".join(parts) + ".**"


def _details(upgrade: AppUpgrade) -> Iterator[str]:
    shown = [each for each in upgrade.changes if each.effect is not Effect.LEFT]
    if not shown and not upgrade.error:
        return
    yield ""
    yield f"## {upgrade.name}"
    yield ""
    if upgrade.error:
        # The errors of the library have several lines.
        yield (
            "Its code does not work with the new version:"
            if upgrade.changed_code
            else ("It could not be compared:")
        )
        yield ""
        yield "```text"
        yield upgrade.error.replace("```", "'''")
        yield "```"
        yield ""
        if upgrade.changes:
            yield "With the code of the new version's example:"
            yield ""
    if not shown:
        return
    yield "| What | Resource | Type | Logical ID | Changed | You notice |"
    yield "|---|---|---|---|---|---|"
    order = list(Effect)
    for each in sorted(shown, key=lambda each: (order.index(each.effect), each.kind, each.path)):
        cells = [
            each.effect.value,
            each.path,
            each.kind,
            f"`{each.logical_id}`",
            ", ".join(f"`{name}`" for name in each.because),
            _noticed(each),
        ]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _noticed(change: ResourceChange) -> str:
    words = _REFUSED if change.effect is Effect.REFUSED else ""
    words = words or NOTICED.get((change.kind, change.effect), "")
    kept = "the old one stays in the account" if change.retained else ""
    return "; ".join(each for each in (words, kept) if each)
