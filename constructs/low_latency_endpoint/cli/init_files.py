"""The files that ``low-latency init`` writes."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import typer

from .. import __version__
from ..errors.installation import origin
from .init_values import HUGGING_FACE, InitValues
from .options import naming
from .schema import schema_text

_TEMPLATES = Path(__file__).with_name("init_templates")
_ADDED = {"tests/test_$settings_snapshot.py": "test_snapshot.py.txt"}
_NEW = {
    "app.py": "app.py.txt",
    "cdk.json": "cdk.json",
    "requirements.txt": "requirements.txt",
    "package.json": "package.json",
    ".gitignore": "gitignore.txt",
}
_SCHEMA = "endpoint.schema.json"
"""What the first line of a settings file names, for editors."""
_BEFORE_PIN = ("LLE343", "LLE344")
"""What is wrong with the model of the Hub until low-latency pin has run."""


def has_app(folder: Path) -> bool:
    """Whether a ``cdk.json`` is there, of an app in Python."""
    path = folder / "cdk.json"
    if not path.exists():
        return False
    try:
        stated = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise typer.BadParameter(f"{path} is no JSON") from None
    command = str(stated.get("app", "")) if isinstance(stated, dict) else ""
    if "python" not in command and ".py" not in command:
        raise typer.BadParameter(
            f"the app of {path} is not Python's ({command or 'it names none'}); nothing was "
            "written. Start the endpoint's app in a folder of its own: low-latency init serving"
        )
    return True


def _files(settings: str, app: bool) -> dict[str, str]:
    """Name of each file, and of its template, but for the settings file."""
    stem = Path(settings).stem.replace("-", "_")
    added = {name.replace("$settings", stem): source for name, source in _ADDED.items()}
    return added if app else {**_NEW, **added}


def check_room(folder: Path, settings: str, app: bool) -> None:
    """Refuse before anything is written, where a file would be overwritten."""
    if Path(settings).name != settings or not settings.endswith((".yaml", ".yml")):
        raise typer.BadParameter("--settings is a name such as endpoint.yaml, without a folder")
    there = [name for name in (settings, *_files(settings, app)) if (folder / name).exists()]
    if there:
        hint = " --settings names another file" if settings in there and app else ""
        raise typer.BadParameter(
            f"{', '.join(there)} in {folder.absolute()} would be overwritten; nothing was "
            f"written.{hint}"
        )


def write(folder: Path, settings: str, found: InitValues, app: bool) -> Iterator[Path]:
    """Check the settings, then write everything; nothing where they have a mistake."""
    from ..errors import SettingsError
    from ..settings.loading import check_text

    values = {
        "settings": settings,
        "stack_name": "".join(part.capitalize() for part in found.name.split("-")) + "Endpoint",
        "name": found.name,
        "model_data": found.model_data,
        "region": found.region,
        "wheel": _wheel().name,
    }
    text = settings_text(found, values)
    try:
        check_text(text, folder / settings)
    except SettingsError as error:
        if any(each.code not in _BEFORE_PIN for _, each in error.problems):
            raise
    contents = {settings: text} | {
        name: _filled(source, values) for name, source in _files(settings, app).items()
    }
    if not (folder / _SCHEMA).exists():  # another settings file of the folder has brought it
        contents[_SCHEMA] = f"{schema_text()}\n"
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
        yield path
    if (wheel := _wheel()).exists() and not (folder / wheel.name).exists():
        yield Path(shutil.copy(wheel, folder))


def _wheel() -> Path:
    """What requirements name, as PyPI has nothing of ours: a file, which may not be there."""
    source = origin()
    built = Path("dist", f"cdk_low_latency_endpoint-{__version__}-py3-none-any.whl")
    return source if source and source.suffix == ".whl" else (source or Path("CHECKOUT")) / built


def settings_text(found: InitValues, values: dict[str, str]) -> str:
    """The settings file: where, then what."""
    guess = "" if found.zones_are_said else "; not said: the region's first two were taken"
    kind = "ids" if any("-az" in zone for zone in found.zones) else "names"
    lines = [f"region: {found.region}"]
    if found.account:
        lines.append(f'account: "{found.account}"')
    lines += [
        "",
        "client_zones:",
        f"  {kind}: [{', '.join(found.zones)}]   # where the callers run{guess}",
    ]
    if found.vpc_id:
        lines += ["", "network:", f"  vpc_id: {found.vpc_id}"]
        if found.subnets:
            lines.append("  subnets:                            # of the model and of the endpoint")
        for zone, subnet in found.subnets.items():
            others = found.others.get(zone)
            note = f"   # or {', '.join(others)}" if others else ""
            lines.append(f"    {zone}: {subnet}{note}")
    where = "\n".join([*lines, "", ""])
    parts = ("head.yaml", f"{found.template}.yaml", "measured.yaml")
    head, what, measured = (_filled(part, values) for part in parts)
    return head + where + what + measured


def _filled(source: str, values: dict[str, str]) -> str:
    text = (_TEMPLATES / source).read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"${name}", value)
    return text


def next_steps(folder: Path, settings: str, found: InitValues, app: bool) -> str:
    """What to do now."""
    enter = [] if folder.resolve() == Path.cwd() else [f"  cd {shlex.quote(str(folder))}"]
    plan = (
        f"  low-latency plan{naming(Path(settings))}".ljust(35)
        + " what follows from it, with reasons (-v)"
    )
    if found.template == HUGGING_FACE:
        pin = f"  low-latency pin {found.model_data}".ljust(37)
        enter += [f"{pin}   its files by their hashes, into models.lock.yaml"]
    source = _wheel()
    wheel = [] if source.exists() else [f"  cp {source} .   after `make wheel` there"]
    if not app:
        return "\n".join(
            [
                "",
                "Next:",
                *enter,
                *wheel,
                "  pip install -r requirements.txt pytest && pytest",
                plan,
                f"  low-latency preflight{naming(Path(settings))}".ljust(35)
                + " would it deploy and work in this account?",
                "  npm install && npx cdk bootstrap && npx cdk deploy",
            ]
        )
    return "\n".join(
        [
            "",
            "Next, in the app, before app.synth():",
            "  from low_latency_endpoint import LowLatencyEndpointStack",
            f'  LowLatencyEndpointStack.from_settings(app, "{settings}")',
            "and in requirements.txt:",
            f"  ./{source.name}[operations]",
            "then:",
            *enter,
            *wheel,
            plan,
            f"  cdk deploy {''.join(part.capitalize() for part in found.name.split('-'))}Endpoint",
        ]
    )
