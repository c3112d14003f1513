"""Apps synthesised with a wheel of the library, as users have it: code first, then the version.

Run as a script, it synthesises apps one after the other in one process, as most of each would be
the start of Node.js.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .repository import ROOT, Refused

_SCRIPT = """
import pathlib, runpy, sys
import aws_cdk
target = pathlib.Path(sys.argv[1])
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
    """What became of one app.

    Parameters
    ----------
    templates
        By the stack's name.
    error
        Why there is none.
    """

    templates: dict[str, dict[str, Any]]
    error: str = ""


def apps_of(checkout: Path) -> dict[str, Path]:
    """The apps and settings files of a checkout that stand for users' own, by their paths in it."""
    examples = sorted((checkout / "examples").glob("*"))
    found = [checkout / "endpoint.yaml"]
    found += [path for path in examples if path.suffix == ".yaml"]
    found += [
        path
        for path in examples
        if path.suffix == ".py" and "\napp.synth()" in path.read_text(encoding="utf-8")
    ]
    return {path.relative_to(checkout).as_posix(): path for path in found if path.is_file()}


def synthesise(apps: Iterable[Path], packages: Path, folder: Path) -> dict[str, Synthesised]:
    """Synthesise apps with the library that lies in a folder, by the names of their files.

    Parameters
    ----------
    packages
        The folder with ``low_latency_endpoint``: an unpacked wheel. Everything else is this
        environment's.
    folder
        Gets an assembly for each app.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [path.resolve() for path in apps]
    flags = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(packages.resolve()),
        "CDK_CONTEXT_JSON": json.dumps({**flags, "aws:cdk:enable-path-metadata": True}),
    }
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(folder.resolve()), *map(str, paths)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refused(f"synthesis with {packages}: {done.stderr[-2000:]}")
    return {path.name: _read(folder / path.name) for path in paths}


def _read(output: Path) -> Synthesised:
    failed = output / "error.txt"
    if failed.exists():
        return Synthesised({}, failed.read_text(encoding="utf-8"))
    suffix = ".template.json"
    return Synthesised(
        {
            path.name.removesuffix(suffix): json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(output.rglob(f"*{suffix}"))
        }
    )
