"""What a CDK app reads beside its code: ``cdk.json``, and what the CDK CLI looked up.

Start with :func:`context_beside`. The review takes CDK's feature flags and lookups of VPCs; that
something else differs is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import rule
from ..errors.frozen import dataclass
from ..errors.given_files import bytes_of, json_value

WRONG_CONTEXT = rule(
    "LLE228",
    "the context of the CDK app cannot be read",
    fix="Let the CDK CLI write cdk.context.json: delete the file, and run `npx cdk synth` with "
    "credentials of the account.",
    source="/cdk/v2/guide/context.html",
)
_APP, _LOOKED_UP = "cdk.json", "cdk.context.json"
_MOST_BYTES = 4 * 1024 * 1024  # a lookup of a VPC with a hundred subnets has 20 kB
_FLAG = "@aws-cdk/"
_VPC = "vpc-provider:"
_ACCOUNT = re.compile(r":account=(\d{12}):")


@dataclass(frozen=True)
class AppContext:
    """The context of a CDK app."""

    flags: Mapping[str, Any]
    lookups: Mapping[str, Any]  # of VPCs, by the CDK's keys
    others: Mapping[str, Any]  # what else cdk.json says
    folder: str = ""  # of the app, from the root; empty where there is none
    root: Path | None = None  # the folder of the revision, from which people name files

    def completed(self, other: AppContext) -> AppContext:
        """The context with the lookups of another one, where it has none of its own."""
        return replace(self, lookups={**other.lookups, **self.lookups})


NO_CONTEXT = AppContext({}, {}, {})


def context_beside(file: Path, root: Path, holds: Callable[[Path], bool]) -> AppContext:
    """The context of the app around a settings file: that of the nearest ``cdk.json``.

    What ``cdk.json`` has of a context goes before ``cdk.context.json``, as with the CDK CLI.

    Raises
    ------
    ConfigurationError
        ``LLE228`` for a file that is no JSON object, is larger than 4 MiB, or is a symbolic link
        out of the revision.
    """
    folders = [folder for folder in file.parents if folder.is_relative_to(root)]
    for name in (_APP, _LOOKED_UP):
        apps = [folder for folder in folders if _is_there(folder / name, holds)]
        if apps:
            return _context_of(apps[0], root, holds)
    return replace(NO_CONTEXT, root=root)


def changed_lookups(before: AppContext, after: AppContext) -> list[str]:
    """The lookups that both have, with another answer."""
    was, now = before.lookups, after.lookups
    return [key for key in was if key in now and was[key] != now[key]]


def account_of(keys: list[str]) -> str | None:
    """The account of the first of the lookups."""
    accounts = map(_ACCOUNT.search, keys)
    return next((account[1] for account in accounts if account), None)


def unread_differences(before: AppContext, after: AppContext) -> list[str]:
    """What of the app differs and is not read: the app's command, context of its own, its folder."""
    names = dict.fromkeys([*before.others, *after.others])
    different = [name for name in names if before.others.get(name) != after.others.get(name)]
    if before.folder and after.folder and before.folder != after.folder:
        different.append(f"the app's folder {before.folder} -> {after.folder}")
    return different


def _context_of(folder: Path, root: Path, holds: Callable[[Path], bool]) -> AppContext:
    app = _content(folder / _APP, holds)
    stated = app.pop("context", {})
    if not isinstance(stated, Mapping):
        raise WRONG_CONTEXT.error(got="context is no object", allowed="an object", where=_APP)
    context = {**_content(folder / _LOOKED_UP, holds), **stated}
    own = {name: stated[name] for name in stated if not name.startswith((_FLAG, _VPC))}
    return AppContext(
        {name: value for name, value in context.items() if name.startswith(_FLAG)},
        {name: value for name, value in context.items() if name.startswith(_VPC)},
        {**app, **own},
        str(folder.relative_to(root)),
        root,
    )


def _content(file: Path, holds: Callable[[Path], bool]) -> dict[str, Any]:
    """The content of one of the files; empty where there is none."""
    if not _is_there(file, holds):
        return {}
    text = bytes_of(file, WRONG_CONTEXT, _MOST_BYTES)
    try:
        value: dict[str, Any] = json_value(text, dict)
    except ValueError as error:
        raise WRONG_CONTEXT.error(
            got=str(error), allowed="a JSON object", where=file.name
        ) from None
    return value


def _is_there(file: Path, holds: Callable[[Path], bool]) -> bool:
    if not holds(file):
        raise WRONG_CONTEXT.error(
            got="a symbolic link out of the revision, or a submodule",
            allowed="a file of the revision",
            where=file.name,
        )
    return file.is_file()
