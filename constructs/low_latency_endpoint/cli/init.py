"""``low-latency init``: what it writes down, and the files; and ``low-latency schema``, one of them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .. import __version__
from ..errors import LowLatencyEndpointError
from ..errors.given_files import json_value
from ..errors.installation import client_wheel, origin
from ..errors.shell_words import shell_word
from .options import ENDPOINT_YAML, Json, Profile, Region, argument, grouped, naming, option
from .output import print_json, say

if TYPE_CHECKING:
    from ..account.calls import Account


NAMES = {
    "text-classification": "sentiment",
    "language-model": "chat",
    "hugging-face": "hub",
    "inferentia2": "scorer",
}
HUGGING_FACE = "hugging-face"
_LEAST_ZONES = 2


@dataclass(frozen=True)
class InitValues:
    template: str
    name: str
    model_data: str  # in S3; with the template of the Hub, the model's name there
    region: str
    zones: list[str]  # IDs, or names
    zones_are_said: bool  # whether somebody said where the callers run
    account: str | None
    vpc_id: str | None
    # the existing VPC's subnet of each zone; empty where they are looked up by name
    subnets: dict[str, str]
    others: dict[str, list[str]]  # further subnets of each zone that would do

    @property
    def stack_name(self) -> str:
        return "".join(part.capitalize() for part in self.name.split("-")) + "Endpoint"


def init_values(options: InitOptions) -> InitValues:
    from ..facts.zones import region_of_zone

    template, vpc_id = options.template.value, options.vpc_id
    of_hub = template == HUGGING_FACE
    if (options.model_data and of_hub) or (options.model and not of_hub):
        raise typer.BadParameter("--model goes with hugging-face, --model-data with the others")
    zones = _listed(options.zones)
    account = _account(options, zones)
    region = options.region or (zones and region_of_zone(zones[0])) or (account and account.region)
    subnets, others = _subnets(options, zones, account)
    if not zones:
        zones = list(subnets) if vpc_id or not account else _first_zones(account)
    account_id = options.account or (account.account_id() if account else None)
    needed = {
        "--model" if of_hub else "--model-data": options.model or options.model_data,
        "--region": region,
        "--zones": zones,
    }
    if vpc_id:  # is looked up, in an account that is known in a pull request too
        needed["--account"] = account_id
        if _by_id(zones) or not zones:
            needed["--subnets"] = list(subnets)
    if missing := [option for option, value in needed.items() if not value]:
        raise typer.BadParameter(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing. "
            f"Add, with your values: {' '.join(_example(name, zones, template) for name in missing)}"
            + ("" if account else ". With credentials and boto3 more is found.")
        )
    return InitValues(
        template,
        options.name or NAMES[template],
        str(options.model or options.model_data),
        str(region),
        zones,
        bool(options.zones or vpc_id),
        account_id,
        vpc_id,
        {zone: subnets[zone] for zone in zones if zone in subnets},
        others,
    )


_EXAMPLES = {
    "--model": "Qwen/Qwen3-8B",
    "--region": "us-east-1",
    "--zones": "use1-az1,use1-az2",
    "--account": "123456789012",
}


def _example(name: str, zones: Sequence[str], template: str) -> str:
    """A missing option with a value, as one types it: of subnets, one for each zone."""
    if name == "--model-data":
        is_prefix = template == TemplateName.LANGUAGE_MODEL.value
        return f"{name} s3://my-bucket/model{'/' if is_prefix else '.tar.gz'}"
    if name == "--subnets":
        count = len(zones) or _LEAST_ZONES
        return f"{name} {','.join(f'subnet-0123456789abcdef{place}' for place in range(count))}"
    return f"{name} {_EXAMPLES[name]}"


def _listed(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def _by_id(zones: Sequence[str]) -> bool:
    return any("-az" in zone for zone in zones)


def _account(options: InitOptions, zones: Sequence[str]) -> Account | None:
    """The account of the credentials, where boto3, credentials and a region are there."""
    try:
        from ..account.calls import Account
        from ..account.sessions import open_clients
        from ..facts.zones import region_of_zone
    except ModuleNotFoundError:
        if options.profile:
            raise
        return None
    usual = (region_of_zone(zones[0]) if zones else None) or os.environ.get("CDK_DEFAULT_REGION")
    try:
        client, region = open_clients(options.profile, options.region, usual)
        account = Account(client, region)
        account.account_id()
    except LowLatencyEndpointError:
        if options.profile:
            raise
        return None
    return account


def _first_zones(account: Account) -> list[str]:
    from ..account.network import describe_zones

    with suppress(LowLatencyEndpointError):
        found = [
            zone
            for zone in describe_zones(account)
            if zone.get("ZoneType", "availability-zone") == "availability-zone"
        ]
        return sorted(zone["ZoneId"] for zone in found)[:_LEAST_ZONES]
    return []


def _subnets(
    options: InitOptions, zones: Sequence[str], account: Account | None
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The subnet of each zone: as given, else the one with the most room and no internet gateway."""
    if options.vpc_id is None:
        if options.subnets:
            raise typer.BadParameter("--subnets goes with --vpc-id")
        return {}, {}
    if options.subnets:
        given = _listed(options.subnets)
        if len(given) != len(zones):
            raise typer.BadParameter("--subnets needs --zones, and one subnet for each of them")
        return dict(zip(zones, given, strict=True)), {}
    if account is None:
        return {}, {}
    from ..account.network import route_table, subnets_of_vpc, way_out

    try:
        subnets = subnets_of_vpc(account, options.vpc_id)
        private = [
            each for each in subnets if way_out(route_table(account, each)) != "internet gateway"
        ]
    except LowLatencyEndpointError:
        return {}, {}
    if not subnets:
        raise typer.BadParameter(
            f"{options.vpc_id} has no subnets in {account.region}, or is not there"
        )
    in_zone: dict[str, list[Mapping[str, Any]]] = {}
    key = "AvailabilityZone" if zones and not _by_id(zones) else "AvailabilityZoneId"
    for each in sorted(private, key=lambda one: -int(one.get("AvailableIpAddressCount", 0))):
        in_zone.setdefault(each[key], []).append(each)
    wanted = [zone for zone in (zones or sorted(in_zone)) if zone in in_zone]
    return (
        {zone: str(in_zone[zone][0]["SubnetId"]) for zone in wanted},
        {zone: [str(each["SubnetId"]) for each in in_zone[zone][1:]] for zone in wanted},
    )


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
_MOST_BYTES = 1 << 20
"""Of a ``cdk.json``; the CDK's own, with all its feature flags, has some thousand."""
_BEFORE_PIN = ("LLE343", "LLE344")
"""What is wrong with the model of the Hub until low-latency pin has run."""


def has_app(folder: Path) -> bool:
    """Whether a ``cdk.json`` is there, of an app in Python."""
    path = folder / "cdk.json"
    if not os.path.lexists(path):
        return False
    if not path.is_file():  # a pipe would have its reader wait, and a device does not end
        raise typer.BadParameter(f"{path} is no file; nothing was written")
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise typer.BadParameter(f"{path} has more than {_MOST_BYTES:,} bytes; nothing was written")
    try:
        content = json_value(text, {"app?": str})
    except ValueError as problem:
        raise typer.BadParameter(f"{path} is no JSON of the CDK: {problem}") from None
    command = content.get("app", "")
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
    files = (settings, *_files(settings, app))
    for parent in {(folder / name).parent for name in files} - {folder}:
        if os.path.lexists(parent) and (parent.is_symlink() or not parent.is_dir()):
            raise typer.BadParameter(
                f"{parent} is a link, or no folder; nothing was written. Start the app in a folder "
                "of its own: low-latency init serving"
            )
    there = [name for name in files if os.path.lexists(folder / name)]
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
        "stack_name": found.stack_name,
        "name": found.name,
        "model_data": found.model_data,
        "region": found.region,
        "wheel": _wheel().name,
        "client_wheel": client_wheel(),
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
    if not os.path.lexists(folder / _SCHEMA):  # another settings file of the folder has brought it
        contents[_SCHEMA] = f"{schema_text()}\n"
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
        yield path
    for wheel in _wheels():
        if wheel.exists() and not os.path.lexists(folder / wheel.name):
            yield Path(shutil.copy(wheel, folder))


def _wheels() -> tuple[Path, Path]:
    """Return what requirements name, as PyPI has nothing of ours: files, which may not be there."""
    wheel = _wheel()
    return wheel, wheel.with_name(client_wheel())


def _wheel() -> Path:
    """Return the path of the library's wheel; `make wheel` builds the client's beside it."""
    source = origin()
    built = Path("dist", f"cdk_low_latency_endpoint-{__version__}-py3-none-any.whl")
    return source if source and source.suffix == ".whl" else (source or Path("CHECKOUT")) / built


def settings_text(found: InitValues, values: dict[str, str]) -> str:
    """The settings file: where, then what."""
    guess = "" if found.zones_are_said else "; not said: the region's first two were taken"
    kind = "ids" if _by_id(found.zones) else "names"
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
        lines += [
            "private_link:",
            "  private_dns: false                  # other callers of SageMaker in the VPC notice nothing",
        ]
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
    enter = [] if folder.resolve() == Path.cwd() else [f"  cd {shell_word(folder)}"]
    plan = (
        f"  low-latency plan{naming(Path(settings))}".ljust(35)
        + " what follows from it, with reasons (-v)"
    )
    if found.template == HUGGING_FACE:
        pin = f"  low-latency pin {shell_word(found.model_data)}".ljust(37)
        enter += [f"{pin}   its files by their hashes, into models.lock.yaml"]
    missing = [wheel for wheel in _wheels() if not wheel.exists()]
    built = "`make wheel` of the library's repository builds it"
    copies = [f"  cp {shell_word(wheel)} .   {built}" for wheel in missing]
    if not app:
        look_up = "  npx cdk synth".ljust(35) + " with credentials: looks up the VPC, into"
        looked_up = [look_up, f"{'':36}cdk.context.json, to be committed"] if found.vpc_id else []
        return "\n".join(
            [
                "",
                "Next:",
                *enter,
                *copies,
                "  pip install -r requirements.txt pytest && npm install",
                plan,
                *looked_up,
                "  pytest".ljust(35) + " writes tests/template.json, to be committed",
                f"  low-latency preflight{naming(Path(settings))}".ljust(35)
                + " would it deploy and work in this account?",
                "  npx cdk bootstrap && npx cdk deploy",
            ]
        )
    return "\n".join(
        [
            "",
            "Next, in the app, before app.synth():",
            "  from low_latency_endpoint import LowLatencyEndpointStack",
            f'  LowLatencyEndpointStack.from_settings(app, "{settings}")',
            "and in requirements.txt:",
            f"  ./{_wheel().name}[operations]",
            f"  ./{client_wheel()}",
            "then:",
            *enter,
            *copies,
            plan,
            f"  cdk deploy {shell_word(found.stack_name)}",
        ]
    )


class TemplateName(StrEnum):
    """What is served, and on what."""

    TEXT_CLASSIFICATION = "text-classification"
    LANGUAGE_MODEL = "language-model"
    HUGGING_FACE = "hugging-face"
    INFERENTIA2 = "inferentia2"


@dataclass
class InitOptions:
    """What is served, and where; the account has what is not given."""

    template: TemplateName = option(
        "What to serve: text-classification on CPUs, language-model on a GPU with vLLM, "
        "hugging-face with a model from the Hub, or inferentia2 with a model compiled for Neuron.",
        TemplateName.TEXT_CLASSIFICATION,
        metavar="TEMPLATE",
    )
    model_data: str | None = option(
        "Model in S3: a .tar.gz file, or the prefix of its files for language-model.",
        metavar="S3_URI",
    )
    model: str | None = option(
        "With hugging-face: name of the model on the Hub, such as Qwen/Qwen3-8B.", metavar="MODEL"
    )
    vpc_id: str | None = option("VPC that the callers run in. Default: a new VPC.", metavar="VPC")
    zones: str | None = option(
        "Availability Zones that the callers run in, by ID or name, at least two: "
        "use1-az1,use1-az2. Default: the zones of the VPC; for a new VPC the first two of the Region.",
        metavar="LIST",
    )
    subnets: str | None = option(
        "With --vpc-id: one subnet per zone, in the order of the zones. Default: looked up in the "
        "account, or at synthesis for zones given by name.",
        metavar="LIST",
    )
    name: str | None = option(
        "Name of the endpoint. Default: sentiment, chat, hub or scorer, depending on the template.",
        metavar="NAME",
    )
    account: str | None = option(
        "AWS account ID, 12 digits. Default: the account of the credentials.", metavar="ACCOUNT"
    )
    profile: Profile = None
    region: Region = None
    file: str = option(
        "Settings file to write. Give another name if the app already has one.",
        str(ENDPOINT_YAML),
        names="--settings",
        metavar="FILE",
    )
    json: Json = False
    folder: Path = argument(
        "Folder to write to. Default: the current folder.",
        Path("."),
        metavar="FOLDER",
        show_default=False,
    )


@grouped
def init(options: InitOptions) -> None:
    """Start a CDK app with an endpoint, or add one to an app that exists.

    Writes app.py, cdk.json, endpoint.yaml, requirements.txt, package.json (the CDK CLI) and a
    snapshot test, and copies the wheels of the library and its client. If the folder has a cdk.json, it
    writes the settings, their schema and the test, and prints the lines to add to the app. It never
    overwrites a file.

    With AWS credentials it looks up the Region, account, zones and subnets that you do not give
    (ec2:DescribeAvailabilityZones, DescribeSubnets, DescribeRouteTables and
    sts:GetCallerIdentity). It lists what is still missing.

    \b
    Exit codes:
      0  written
      2  usage error, something is missing, or a file exists; nothing is written

    \b
    Examples:
      low-latency init --model-data s3://my-bucket/model.tar.gz
      low-latency init serving --vpc-id vpc-0123456789abcdef0 --profile production
      low-latency init --template language-model --model-data s3://my-bucket/qwen/
      low-latency init --template hugging-face --model Qwen/Qwen3-8B
      low-latency init --zones use1-az1,use1-az2 --model-data s3://bucket/m.tar.gz
    """
    folder = options.folder
    app = has_app(folder)
    check_room(folder, options.file, app)
    values = init_values(options)
    written = write(folder, options.file, values, app)
    if options.json:
        print_json({"written": [str(path) for path in written]})
        return
    for path in written:
        say(f"wrote {path}")
    say(next_steps(folder, options.file, values, app))


def schema() -> None:
    """Print the JSON schema of the settings file.

    \b
    Example:
      low-latency schema > endpoint.schema.json
    """
    say(schema_text())


def schema_text() -> str:
    """The JSON schema of the settings file, which editors complete and check by."""

    from ..settings import settings_json_schema

    return json.dumps(settings_json_schema(), indent=2, ensure_ascii=False)
