"""The reference of commands and Python names, made from ``--help`` and docstrings.

``python -m docs.make_reference_pages`` writes the files of :func:`reference_pages`, and deletes what
it does not write. :data:`CONSTRUCTS` and :data:`MODULES` say which name stands on which page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docs.public_api import Argument, Callable, Class, Package
from docs.reference_markdown import Page

DOCS = Path(__file__).parent
MADE = "<!-- Generated: make docs -->"
#: Where a docstring only names it.
_COMMON = {
    "cluster": "The ECS cluster.",
    "endpoint_arn": "The endpoint's ARN.",
    "endpoint_config_name": "The endpoint configuration's name.",
    "interface_endpoint": "The interface endpoint.",
    "log_group": "The log group of the tasks.",
    "master_task_definition": "The task that leads the load generators.",
    "model_arn": "The model's ARN.",
    "model_name": "The model's name.",
    "network": "The network that the endpoints share.",
    "private_link": "The interface endpoint that the endpoints share.",
    "topic": "The SNS topic.",
    "variant_name": "The variant's name.",
    "worker_task_definition": "The task of each load generator.",
    "connections": "Its security groups, for the CDK's ``allow_*`` methods.",
    "scope": "The construct in which this one is made.",
    "id": "The construct's ID in its scope.",
}


@dataclass(frozen=True)
class Group:
    """A part of the index, and its pages: file, title, names in their order."""

    title: str
    pages: tuple[tuple[str, str, str], ...]


CONSTRUCTS = (
    Group(
        "The whole endpoint",
        (
            ("low-latency-endpoint", "", "LowLatencyEndpoint"),
            ("low-latency-endpoint-stack", "", "LowLatencyEndpointStack"),
        ),
    ),
    Group(
        "Arguments of LowLatencyEndpoint",
        (
            (
                "callers-load-and-latency",
                "Client zones, latency targets and load",
                "ClientZones LatencyTarget MeasuredThroughput PeakAtTime TokenTraffic TokenLengths",
            ),
            (
                "containers",
                "Containers, images and model data",
                "Container ContainerImage ModelData HuggingFaceModel ModelOptions",
            ),
            (
                "variants",
                "Variants, instance types and routing",
                "InstanceType InstancePool RoutingStrategy InferenceAmi VariantOptions "
                "FurtherVariant ProductionVariant VariantAttributes",
            ),
            (
                "endpoint-options",
                "Endpoint, deployment and data capture",
                "EndpointOptions DeploymentPolicy ConfigurationOptions MetricsPublishing "
                "DataCapture CoreDump Safeguards",
            ),
            (
                "scaling-options",
                "Instance counts and scaling",
                "InstanceCounts ScalingOptions ScalingSchedule ScalingSteps StepUp",
            ),
            ("alarm-options", "Alarms", "AlarmOptions SlowRequests TokenAlarmOptions"),
            (
                "warm-up-options",
                "Warm-up and canary",
                "WarmUpOptions WarmUpPayload KeepWarmOptions CanaryOptions",
            ),
        ),
    ),
    Group(
        "Network",
        (
            ("zone-aligned-network", "", "ZoneAlignedNetwork"),
            ("runtime-private-link", "", "RuntimePrivateLink"),
        ),
    ),
    Group(
        "Model and endpoint",
        (
            ("model", "", "Model IModel"),
            ("staged-model", "", "StagedModel"),
            ("endpoint-configuration", "", "EndpointConfiguration IEndpointConfiguration"),
            ("endpoint", "", "Endpoint IEndpoint"),
            ("scaling", "Scaling", "InvocationScaling CopyScaling"),
            ("component-host", "", "ComponentHost"),
            ("inference-component", "", "InferenceComponent"),
        ),
    ),
    Group(
        "Monitoring",
        (
            ("latency-alarms", "", "LatencyAlarms"),
            ("token-latency-alarms", "", "TokenLatencyAlarms"),
            ("shadow-alarms", "", "ShadowAlarms"),
            ("alarm-topic", "", "AlarmTopic"),
            ("latency-dashboard", "", "LatencyDashboard"),
            ("zone-canary", "", "ZoneCanary"),
        ),
    ),
    Group(
        "Warm-up and load tests",
        (
            ("warm-up", "", "WarmUp"),
            ("load-test-fleet", "", "LoadTestFleet"),
            ("load-test-fleet-stack", "", "LoadTestFleetStack"),
        ),
    ),
)

MODULES = {
    "client": (
        "low_latency_client",
        "Python client",
        "`low_latency_client` calls endpoints from Python services ([guide](../how-to/clients.md)). "
        "It is installed without the constructs and without the CDK.",
        "RuntimeClient AsyncRuntimeClient runtime_client Hedging CallRecord ClientZone "
        "find_client_zone BearerTokens openai_base_url prefix_aware_id ConfigurationError "
        "GenerationTimeoutError GenerationCutError GenerationFailedError",
    ),
    "python/load-test": (
        "low_latency_endpoint.load_test",
        "Load tests in Python",
        "`low_latency_endpoint.load_test` runs from Python what `low-latency load-test` and "
        "`low-latency compare-routing` run ([guide](../../how-to/load-tests.md)). It needs the extra "
        "`load-test`.",
        "load_test Target Payloads LatencyGoal SearchPlan limit_plan rate_plan users_plan "
        "confirm_plan compare_routing ComparisonPlan write_page GeneratorProcess Step StepResult "
        "Arrivals ConstantArrivals PoissonArrivals RampArrivals SteppedArrivals ReplayedArrivals "
        "SageMakerUser InvocationFailed",
    ),
    "python/simulate": (
        "low_latency_endpoint.simulate",
        "Simulation in Python",
        "`low_latency_endpoint.simulate` runs from Python what `low-latency simulate` runs "
        "([what it models](../../explanation/simulation.md)). With the extra `simulation` it is 10 to "
        "70 times faster.",
        "simulate compare Scenario OpenLoop ClosedLoop ShapedLoop ArrivalTrace Constant Lognormal "
        "Exponential Empirical TargetTracking CapacityLimits InstanceStart Rollout ZoneOutage shape "
        "shapes shape_of_counts read_recorded_traffic Shape SimulationResult Comparison Estimate "
        "Replication",
    ),
    "python/local-sagemaker": (
        "local_sagemaker",
        "Local AWS in Python",
        "`local_sagemaker` is the local AWS in which `make demo` and the tests deploy "
        "([what it emulates](../local-aws.md)).",
        "LocalAws RuntimeOptions deploy_template delete_stack DeployedStack DeploymentFailed "
        "LocalAwsError",
    ),
}
#: Readers get these from a method or a function; they do not call the constructor.
RETURNED = {
    *("CopyScaling", "InvocationScaling", "VariantAttributes", "IEndpoint", "IModel"),
    *("IEndpointConfiguration", "ContainerImage", "ModelData", "ConfigurationError"),
    *("GenerationCutError", "GenerationFailedError", "GenerationTimeoutError", "CallRecord"),
    *("ClientZone", "Arrivals", "StepResult", "SageMakerUser", "InvocationFailed"),
    *("SimulationResult", "Comparison", "Estimate", "Replication", "Shape", "LocalAws"),
    *("DeployedStack", "DeploymentFailed", "LocalAwsError", "BearerToken"),
}


@cache
def _package(module: str) -> Package:
    return Package(module)


def reference_pages() -> dict[str, str]:
    """All pages by their path below ``docs/``."""
    places = _places()
    pages = {"reference/commands.md": _commands()}
    library = _package("low_latency_endpoint")
    for group in CONSTRUCTS:
        for file, title, names in group.pages:
            page = Page(f"reference/constructs/{file}.md", library.name, places)
            pages[page.path] = _page(page, library, title or names.split()[0], "", names.split())
    pages["reference/constructs/index.md"] = _index(library, places)
    for file, (module, title, text, names) in MODULES.items():
        page = Page(f"reference/{file}.md", module, places)
        pages[page.path] = _page(page, _package(module), title, text, names.split())
    return pages


def _places() -> dict[str, str]:
    """Page and anchor of each public name and ``Class.method``.

    Each name stands there as ``package:name`` too, of which a page's examples ask.
    """
    places: dict[str, str] = {}
    for module, path, names in _contents():
        for name in names:
            anchor = "" if name == _title(path) else f"#{name.lower()}"
            places[f"{module}:{name}"] = path + anchor
            places.setdefault(name, path + anchor)
        if module.startswith("low_latency_endpoint"):
            # The library's is not the client's, which has a place of its own.
            places[f"{module}:ConfigurationError"] = "reference/errors.md"
    for module, path, names in _contents():
        for name in names:
            entry = _package(module).entry(name)
            for method in entry.methods if isinstance(entry, Class) else []:
                shown = method.owner if f"{module}:{method.owner}" in places else name
                own = path if shown == name else places[shown].partition("#")[0]
                anchor = f"#{shown.lower()}{method.name}"
                plain = method.is_property or _is_plain(method)
                places[f"{name}.{method.name}"] = places[shown] if plain else own + anchor
    return places


def _contents() -> Iterator[tuple[str, str, list[str]]]:
    """Package, page and names of each page."""
    for group in CONSTRUCTS:
        for file, _, names in group.pages:
            yield "low_latency_endpoint", f"reference/constructs/{file}.md", names.split()
    for file, (module, _, _, names) in MODULES.items():
        yield module, f"reference/{file}.md", names.split()


def _title(path: str) -> str:
    """The class that has a page by itself; empty where several share it."""
    for group in CONSTRUCTS:
        for file, title, names in group.pages:
            if path == f"reference/constructs/{file}.md":
                return title or names.split()[0]
    return ""


def _page(page: Page, package: Package, title: str, text: str, names: list[str]) -> str:
    lines = [f"# {title}\n\n{MADE}", text]
    for name in names:
        is_title = name == title
        if not is_title:
            lines.append(f"## {name}")
        entry = package.entry(name)
        level = "##" if is_title else "###"
        shown = _class(page, entry, level) if isinstance(entry, Class) else _function(page, entry)
        lines += shown
    return "\n\n".join(line for line in lines if line) + "\n"


def _class(page: Page, of: Class, level: str) -> list[str]:
    """A class: what it is, arguments, attributes, methods."""
    blocks = [block for text in of.text for block in page.blocks(text)]
    documented = [base for base in of.bases if base in page.places]
    rest = [base for base in of.bases if base not in documented]
    owners = {of.name, *rest, ""}
    names = {each.name for each in of.methods}
    attributes = [each for each in of.attributes if each.owner in owners and each.name not in names]
    arguments = of.arguments
    if of.name in RETURNED:
        attributes = [
            each for each in arguments if each.text and each.name not in _COMMON
        ] + attributes
        arguments = []
    methods = [each for each in of.methods if each.owner in owners]
    lines = _unrepeated(blocks)
    if documented:
        lines.append(f"It has the attributes and methods of {page.link(documented[0])} too.")
    if of.constants:
        constants = ", ".join(f"`{of.name}.{name}`" for name in of.constants)
        lines.append(f"Constants: {constants}.")
    if arguments:
        lines += [
            f"{level} {_heading(of, level, 'Arguments')}",
            _arguments(page, arguments, of.name),
        ]
    properties = [each for each in methods if each.is_property]
    if attributes or properties:
        lines += [
            f"{level} {_heading(of, level, 'Attributes')}",
            _attributes(page, attributes, properties),
        ]
    calls = [each for each in methods if not each.is_property]
    plain = [each for each in calls if _is_plain(each)]
    if calls:
        lines.append(f"{level} {_heading(of, level, 'Methods')}")
    if plain:
        lines.append(_methods(page, plain))
    for each in calls:
        if each not in plain:
            lines += [f"{level}# {of.name}.{each.name}", *_function(page, each)]
    if of.raises:
        lines += [f"{level} {_heading(of, level, 'Errors')}", *_raises(page, of.raises)]
    return lines


def _heading(of: Class, level: str, title: str) -> str:
    """Unique on its page, so that its anchor stays the same when a class is added."""
    return title if level == "##" else f"{title} of {of.name}"


def _unrepeated(blocks: list[str]) -> list[str]:
    seen: dict[str, str] = {}
    for block in blocks:
        seen.setdefault(" ".join(block.split()), block)
    return list(seen.values())


def _function(page: Page, of: Callable) -> list[str]:
    """A function or method: signature, text, arguments, what it returns and raises."""
    lines = [
        f"`{_signature(of)}`"
        + (f" returns {page.kind(of.returns)}" if of.returns not in ("", "None") else "")
    ]
    lines += _unrepeated([block for text in of.text for block in page.blocks(text)])
    if any(each.text for each in of.arguments):
        lines.append(_arguments(page, of.arguments))
    if of.returns_text:
        lines.append(f"**Returns:** {page.cell(of.returns_text)}")
    lines += _raises(page, of.raises)
    return lines


def _signature(of: Callable) -> str:
    arguments = [
        each.name if each.default is None else f"{each.name}={_short(each.default)}"
        for each in of.arguments
    ]
    return f"{of.name}({', '.join(arguments)})"


def _short(default: str) -> str:
    return default if len(default) < 30 else "..."


def _is_plain(of: Callable) -> bool:
    """Whether a row of a table holds all that is said of a method."""
    paragraphs = [part for text in of.text for part in re.split(r"\n\s*\n", text.strip())]
    described = any(each.text for each in of.arguments)
    return len(paragraphs) < 2 and not described and not of.raises and not of.returns_text


def _arguments(page: Page, arguments: list[Argument], owner: str = "") -> str:
    rows = ["| Argument | Type | Description |", "|---|---|---|"]
    for each in arguments:
        text = _of_owner(each.text, owner) or _COMMON.get(each.name, "")
        shown = page.cell(text)
        if (
            each.default is None
            and not each.name.startswith("*")
            and each.name not in ("scope", "id")
        ):
            shown = f"Required. {shown}"
        elif each.default is not None and "default" not in text.lower():
            shown = f"{shown} {_default(each.default)}".strip()
        rows.append(f"| `{each.name}` | {page.kind(each.type)} | {shown} |")
    return _in_box("\n".join(rows))


def _of_owner(text: str, owner: str) -> str:
    """A field's text without what it says of other classes that have the field."""
    first, *others = re.split(r"\n\s*\n|(?<=\.) (?=An? :class:)", text)
    kept = [
        part for part in others if not re.match(r"An? :class:", part) or f":class:`{owner}`" in part
    ]
    if any(f":class:`{owner}`" in part for part in kept):
        first = re.sub(r"\s*Default:.*", "", first, flags=re.S)
    return "\n\n".join([first, *kept])


def _default(default: str) -> str:
    if default in ("None", "()", "[]", "{}", "''") or default.startswith(
        ("field(", "dict(", "list(")
    ):
        return "Default: none."
    words = {"True": "yes", "False": "no"}
    return f"Default: {words.get(default) or f'`{default}`'}."


def _attributes(page: Page, attributes: list[Argument], properties: list[Callable]) -> str:
    rows = ["| Attribute | Type | Description |", "|---|---|---|"]
    for attribute in attributes:
        text = attribute.text or _COMMON.get(attribute.name, "")
        if attribute.name.startswith("cfn_"):
            text = "The CloudFormation resource (L1)."
        rows.append(f"| `{attribute.name}` | {page.kind(attribute.type)} | {page.cell(text)} |")
    for each in properties:
        text = " ".join(
            block for part in each.text for block in page.blocks(part) if "```" not in block
        )
        rows.append(f"| `{each.name}` | {page.kind(each.returns)} | {page.cell(text)} |")
    return _in_box("\n".join(rows))


def _methods(page: Page, methods: list[Callable]) -> str:
    rows = ["| Method | Description |", "|---|---|"]
    for each in methods:
        returns = f" Returns {page.kind(each.returns)}." if each.returns not in ("", "None") else ""
        rows.append(f"| `{_signature(each)}` | {page.cell(' '.join(each.text))}{returns} |")
    return '<div class="settings methods" markdown>\n\n' + "\n".join(rows) + "\n\n</div>"


def _raises(page: Page, raises: list[tuple[str, str]]) -> list[str]:
    return [f"Raises {page.kinds(kind)}: {page.cell(text)}" for kind, text in raises]


def _index(library: Package, places: Mapping[str, str]) -> str:
    page = Page("reference/constructs/index.md", library.name, places)
    lines = [
        f"# Constructs\n\n{MADE}",
        "All public names of `low_latency_endpoint`. Start with "
        f"{page.link('LowLatencyEndpoint')}: it makes the other constructs. "
        "[Settings](../settings.md) are the same options in a file.",
    ]
    for group in CONSTRUCTS:
        rows = [f"## {group.title}\n", "| Class | Purpose |", "|---|---|"]
        for _, _, names in group.pages:
            rows += [
                f"| {page.link(name)} | {_purpose(page, library, name)} |" for name in names.split()
            ]
        lines += [rows[0].strip(), _in_box("\n".join(rows[1:]))]
    return "\n\n".join(lines) + "\n"


def _in_box(table: str) -> str:
    """A table whose names stay whole, and whose rows are cards on a phone: site.css."""
    return f'<div class="settings" markdown>\n\n{table}\n\n</div>'


def _purpose(page: Page, library: Package, name: str) -> str:
    entry = library.entry(name)
    first = page.cell(re.split(r"\n\s*\n", entry.text[0].strip())[0])
    if len(first.split()) < 20:
        return first
    return re.split(r"(?<=[a-z`)])\. (?=[A-Z])", first)[0].rstrip(".") + "."


def _commands() -> str:
    """The help of each command, as the terminal shows it."""
    import typer
    from typer.testing import CliRunner

    from low_latency_endpoint.cli.application import app

    group: Any = typer.main.get_command(app)
    rows = ["| Command | Purpose |", "|---|---|"]
    parts = []
    for name, command in group.commands.items():
        runner = CliRunner()
        arguments = [name, "--help"]
        shown = runner.invoke(app, arguments, env={"COLUMNS": "88"}, prog_name="low-latency").output
        purpose = command.get_short_help_str(200)
        rows.append(f"| [`{name}`](#low-latency-{name}) | {purpose} |")
        text = "\n".join(line.rstrip() for line in shown.strip().splitlines())
        parts.append(f"## low-latency {name}\n\n```text\n{text}\n```")
    head = f"# Commands\n\n{MADE}\n\nEach command prints its part of this page with `--help`."
    return "\n\n".join([head, _in_box("\n".join(rows)), *parts]) + "\n"


def outdated(pages: Mapping[str, str]) -> list[str]:
    """Pages whose files are not as :func:`reference_pages` made them, or that it no longer makes."""
    present = {
        path.relative_to(DOCS).as_posix()
        for folder in ("constructs", "python")
        for path in (DOCS / "reference" / folder).glob("*.md")
    }
    stale = [
        path
        for path, text in pages.items()
        if not (DOCS / path).exists() or (DOCS / path).read_text("utf-8") != text
    ]
    return stale + sorted(present - set(pages))


def main() -> None:
    """Write the pages, and delete those that are no longer made."""
    pages = reference_pages()
    for path in outdated(pages):
        file = DOCS / path
        if path in pages:
            file.parent.mkdir(exist_ok=True)
            file.write_text(pages[path], "utf-8")
        else:
            file.unlink()


if __name__ == "__main__":
    main()
