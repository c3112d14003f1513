"""What an upgrade of the library does to stacks that are deployed: a page for each release.

    python -m tools.release.upgrade OLD NEW      # two revisions; the page comes to stdout

The apps of the old revision stand for users' code. Each is synthesised with both revisions of the
library, in one process each as most of it would be the start of Node.js, and the two templates of
each stack are compared. One more stands for stacks whose name is not their construct's path, with an
endpoint whose name the library derives: names that follow from the one or the other differ in it alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from low_latency_endpoint.change.resource_changes import ResourceChange, ResourceEffect, changes_of

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = "endpoint.yaml"
APART = f"{SHIPPED}, unnamed, in a stack with another name"
_ENDPOINT_NAME = re.compile(r"^ +endpoint_name:.*\n", re.MULTILINE)
#: What users of a resource notice, where it is more than CloudFormation's word for it.
NOTICED = {
    ("AWS::SageMaker::Endpoint", ResourceEffect.REPLACED): "callers of the old name fail",
    ("AWS::SageMaker::Endpoint", ResourceEffect.DELETED): "its callers fail",
    (
        "AWS::SageMaker::EndpointConfig",
        ResourceEffect.REPLACED,
    ): "a guarded deployment: new instances",
    ("AWS::EC2::VPCEndpoint", ResourceEffect.REPLACED): "callers' connections through it end",
    ("AWS::EC2::VPCEndpoint", ResourceEffect.DELETED): "callers' connections through it end",
    ("AWS::CloudWatch::Alarm", ResourceEffect.REPLACED): "it begins without a state",
}
_REFUSED = (
    "the update is refused, as the new one is made first: it would have the old one's name, or track "
    "the old one's metric"
)
_WORDS = {
    ResourceEffect.REFUSED: "the update fails and is rolled back; nothing changes",
    ResourceEffect.REPLACED: "a new one is made, then the old one is deleted",
    ResourceEffect.DELETED: "the new version does not have it",
    ResourceEffect.MAY_BE_REPLACED: "the function of a custom resource decides, or a property's value",
    ResourceEffect.UPDATED: "changed while it is used",
    ResourceEffect.ADDED: "new beside what is there",
    ResourceEffect.LEFT: "the same in both templates",
}
_SCRIPT = """
import os, pathlib, runpy, sys
import aws_cdk
target = pathlib.Path(sys.argv[1])
if os.environ.get("STACK_NAME"):
    made_stack = aws_cdk.Stack.__init__
    def stack_of_another_name(stack, scope=None, id=None, **given):
        made_stack(stack, scope, id, **{**given, "stack_name": os.environ["STACK_NAME"]})
    aws_cdk.Stack.__init__ = stack_of_another_name
made = aws_cdk.App.__init__
for path in sys.argv[2:]:
    output = target / pathlib.Path(path).name
    # By argument: Node.js has read CDK_OUTDIR when the first app has started it.
    aws_cdk.App.__init__ = lambda app, outdir=str(output), **given: made(app, outdir=outdir, **given)
    try:
        if path.endswith(".py"):
            runpy.run_path(path, run_name="__main__")
        else:
            from aws_cdk import App
            from low_latency_endpoint import LowLatencyEndpointStack
            app = App()
            LowLatencyEndpointStack.from_settings(app, path)
            app.synth()
    except (Exception, SystemExit) as error:
        output.mkdir(parents=True, exist_ok=True)
        text = f"{type(error).__name__}: {error}".strip()
        (output / "error.txt").write_text(text, encoding="utf-8")
"""


@dataclass(frozen=True)
class Synthesised:
    """The templates of one app by their stacks' names, or why there are none."""

    templates: dict[str, dict[str, Any]]
    error: str = ""


@dataclass(frozen=True)
class AppUpgrade:
    """What an upgrade does to one app, or why nothing could be compared."""

    name: str
    changes: tuple[ResourceChange, ...] = ()
    changed_code: bool = False
    """Whether the app's own code had to change for the new version."""
    error: str = ""

    @property
    def counts(self) -> Counter[ResourceEffect]:
        """How many resources each effect has."""
        return Counter(change.effect for change in self.changes)


def apps_of(checkout: Path) -> dict[str, Path]:
    """The apps and settings files of a checkout that stand for users' own, by their paths in it."""
    examples = sorted((checkout / "examples").glob("*"))
    found = [checkout / SHIPPED]
    found += [path for path in examples if path.suffix == ".yaml"]
    found += [
        path
        for path in examples
        if path.suffix == ".py" and "\napp.synth()" in path.read_text(encoding="utf-8")
    ]
    return {path.relative_to(checkout).as_posix(): path for path in found if path.is_file()}


def synthesise(
    apps: Iterable[Path], checkout: Path, folder: Path, *, stack_name: str = ""
) -> dict[str, Synthesised]:
    """Synthesise apps with the library of a checkout, by the names of their files.

    A ``stack_name`` is that of their stacks in place of what they state.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [path.resolve() for path in apps]
    flags = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    environment = {
        **os.environ,
        "PYTHONPATH": str((checkout / "constructs").resolve()),
        "STACK_NAME": stack_name,
        "CDK_CONTEXT_JSON": json.dumps({**flags, "aws:cdk:enable-path-metadata": True}),
    }
    command = [sys.executable, "-c", _SCRIPT, str(folder.resolve()), *map(str, paths)]
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    return {path.name: _read(folder / path.name) for path in paths}


def _read(output: Path) -> Synthesised:
    failed, suffix = output / "error.txt", ".template.json"
    if failed.exists():
        return Synthesised({}, failed.read_text(encoding="utf-8"))
    found = sorted(output.rglob(f"*{suffix}"))
    return Synthesised(
        {path.name.removesuffix(suffix): json.loads(path.read_text()) for path in found}
    )


def _version(checkout: Path) -> str:
    text = (checkout / "constructs/low_latency_endpoint/__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    return str(version)


def upgrade_page(old: Path, new: Path) -> str:
    """Write the page of an upgrade from one checkout to another.

    The new one's apps are taken for those that the new version does not understand.
    """
    apps, changed = apps_of(old), apps_of(new)
    with tempfile.TemporaryDirectory(prefix="upgrade-") as name:
        folder = Path(name)
        before = synthesise(apps.values(), old, folder / "before")
        after = synthesise(apps.values(), new, folder / "after")
        failed = [
            changed[key]
            for key, path in apps.items()
            if after[path.name].error and key in changed and not before[path.name].error
        ]
        rewritten = synthesise(failed, new, folder / "rewritten") if failed else {}
        apart = [_apart(old, library, folder) for library in (old, new)]
        apart += [_apart(new, new, folder)] if apart[1].error else []
    upgrades = [
        _upgrade(key, before[path.name], after[path.name], rewritten.get(path.name))
        for key, path in apps.items()
    ]
    upgrades.append(_upgrade(APART, apart[0], apart[1], apart[-1]))
    return page(_version(old), _version(new), upgrades)


def _apart(checkout: Path, library: Path, folder: Path) -> Synthesised:
    """A checkout's settings without endpoint names, in a stack that is not called as its path."""
    text = (checkout / SHIPPED).read_text(encoding="utf-8")
    output = folder / f"{checkout.name}-apart-{library.name}"
    settings = output.with_suffix(".yaml")
    settings.write_text(_ENDPOINT_NAME.sub("", text), encoding="utf-8")
    return synthesise([settings], library, output, stack_name="Apart")[settings.name]


def _upgrade(
    name: str, before: Synthesised, after: Synthesised, rewritten: Synthesised | None
) -> AppUpgrade:
    if before.error:
        return AppUpgrade(name, error=f"the old version does not synthesise it: {before.error}")
    error, found = after.error, (rewritten or after) if after.error else after
    nothing: dict[str, dict[str, object]] = {"Resources": {}}
    stacks = {} if found.error else {**before.templates, **found.templates}
    changes = (
        changes_of(before.templates.get(stack, nothing), found.templates.get(stack, nothing))
        for stack in stacks
    )
    return AppUpgrade(name, tuple(c for each in changes for c in each.values()), bool(error), error)


def page(old: str, new: str, upgrades: Sequence[AppUpgrade]) -> str:
    """Write down what was found, as Markdown."""
    return "\n".join(_lines(old, new, upgrades)) + "\n"


def _lines(old: str, new: str, upgrades: Sequence[AppUpgrade]) -> Iterator[str]:
    yield from (f"# Upgrade from {old} to {new}", "", _verdict(upgrades), "")
    yield (
        "The examples of the old version were synthesised with both versions of the library, and "
        "their templates compared. Your own app can differ: run `cdk diff` before you deploy."
    )
    yield ""
    yield _row(["App", *(effect.value.capitalize() for effect in ResourceEffect)])
    yield "|---|" + "---:|" * len(ResourceEffect)
    for each in upgrades:
        unknown = each.error and not each.changes
        yield _row([each.name, *("?" if unknown else str(each.counts[e]) for e in ResourceEffect)])
    yield ""
    yield from (f"- **{effect.value}**: {_WORDS[effect]}" for effect in ResourceEffect)
    for each in upgrades:
        yield from _details(each)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _verdict(upgrades: Sequence[AppUpgrade]) -> str:
    parts, of = [], f"of {len(upgrades)} apps"
    for effect in (
        ResourceEffect.REFUSED,
        ResourceEffect.REPLACED,
        ResourceEffect.DELETED,
        ResourceEffect.MAY_BE_REPLACED,
    ):
        number = sum(each.counts[effect] for each in upgrades)
        apps = sum(bool(each.counts[effect]) for each in upgrades)
        if number:
            noun = "resource" if number == 1 else "resources"
            verb = (
                "" if effect is ResourceEffect.MAY_BE_REPLACED else " is" if number == 1 else " are"
            )
            parts.append(f"{number} {noun}{verb} {effect.value} (in {apps} {of})")
    if unknown := sum(bool(each.error) and not each.changes for each in upgrades):
        parts.append(f"{unknown} {of} could not be compared")
    if changed := sum(each.changed_code for each in upgrades):
        parts.append(f"{changed} {of} need other code")
    return "**" + ("; ".join(parts) or "No resource is replaced or deleted") + ".**"


def _details(upgrade: AppUpgrade) -> Iterator[str]:
    shown = [each for each in upgrade.changes if each.effect is not ResourceEffect.LEFT]
    if shown or upgrade.error:
        yield from ("", f"## {upgrade.name}", "")
    if upgrade.error:
        works = "Its code does not work with the new version:"
        yield works if upgrade.changed_code else "It could not be compared:"
        # The errors of the library have several lines.
        yield from ("", "```text", upgrade.error.replace("```", "'''"), "```", "")
        if upgrade.changes:
            yield from ("With the code of the new version's example:", "")
    if shown:
        yield "| What | Resource | Type | Logical ID | Changed | You notice |"
        yield "|---|---|---|---|---|---|"
    order = list(ResourceEffect)
    for each in sorted(shown, key=lambda each: (order.index(each.effect), each.kind, each.path)):
        because = ", ".join(f"`{name}`" for name in each.because)
        told = f"`{each.logical_id}`", because, _noticed(each)
        yield _row([each.effect.value, each.path, each.kind, *told])


def _noticed(change: ResourceChange) -> str:
    words = _REFUSED if change.effect is ResourceEffect.REFUSED else ""
    words = words or NOTICED.get((change.kind, change.effect), "")
    kept = "the old one stays in the account" if change.retained else ""
    return "; ".join(each for each in (words, kept) if each)


def main(old: str, new: str) -> None:
    """Print the page of an upgrade from one revision to another."""
    with tempfile.TemporaryDirectory(prefix="upgrade-") as name:
        for folder, revision in (("old", old), ("new", new)):
            clone = f"{name}/{folder}"
            subprocess.run(["git", "clone", "-qn", str(ROOT), clone], check=True)
            subprocess.run(["git", "-C", clone, "checkout", "-q", "--detach", revision], check=True)
        print(upgrade_page(Path(name, "old"), Path(name, "new")), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
