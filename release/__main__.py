"""``python -m release STEP``: what `make` and `.github/workflows/release.yml` call."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from .building import build_twice
from .contents import check_contents
from .dry_run import PAGE, dry_run, notes
from .pins import write_image_pins
from .repository import PROJECTS, ROOT, Refused
from .upgrade import upgrade_page

_DIST = ROOT / "dist" / "release"


def _build(given: argparse.Namespace) -> None:
    for name, digest in build_twice(given.commit, given.dist).items():
        print(f"{digest}  {name}")
    print("Two builds from two clones: the same bytes")
    for project in PROJECTS:
        for line in check_contents(project, given.dist / project.name, given.commit):
            print(line)


def _upgrade_effects(given: argparse.Namespace) -> None:
    text = upgrade_page(
        given.old_wheel, given.new_wheel, given.old_checkout or ROOT, given.new_checkout or ROOT
    )
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(text, encoding="utf-8")
    print(f"Wrote {given.output}")


def _notes(given: argparse.Namespace) -> None:
    print(notes(given.tag), end="")


def _dry_run(given: argparse.Namespace) -> None:
    dry_run(given.dist, given.commit, given.tag)


def _image_pins(given: argparse.Namespace) -> None:
    write_image_pins()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    steps = parser.add_subparsers(required=True, metavar="STEP")

    def step(
        name: str, run: Callable[[argparse.Namespace], None], text: str
    ) -> argparse.ArgumentParser:
        made = steps.add_parser(name, help=text, description=text)
        made.set_defaults(run=run)
        return made

    everything = step("all", _dry_run, "every step that needs neither network nor rights")
    build = step("build", _build, "build both distributions twice, compare them, check them")
    for each in (everything, build):
        each.add_argument("--commit", default="HEAD", help="what is built (HEAD)")
        each.add_argument("--dist", type=Path, default=_DIST, help="where to (dist/release)")
    words = step("notes", _notes, "the changelog's section of a version")
    for each in (everything, words):
        each.add_argument("--tag", default="", help="the tag that is released; without it none is")
    effects = step("upgrade-effects", _upgrade_effects, "what an upgrade does to deployed stacks")
    effects.add_argument("old_wheel", type=Path)
    effects.add_argument("new_wheel", type=Path)
    effects.add_argument("--old-checkout", type=Path, help="the old version's examples (these)")
    effects.add_argument("--new-checkout", type=Path, help="the new version's examples (these)")
    effects.add_argument("-o", "--output", type=Path, default=_DIST / PAGE)
    step("image-pins", _image_pins, "pin what the load generator's image installs")
    return parser


def main(given: list[str] | None = None) -> int:
    """Run one step and give its exit code."""
    arguments = _parser().parse_args(given)
    try:
        arguments.run(arguments)
    except Refused as refused:
        print(f"Refused: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
