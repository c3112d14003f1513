"""``low-latency plan``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import ConfigurationError, LowLatencyEndpointError
from .cost_view import along_line, cost_data, cost_parts, total_line, with_prices
from .load_inputs import check_traffic, recorded_shape
from .options import (
    ENDPOINT_YAML,
    EndpointName,
    Json,
    Markdown,
    Prices,
    Strict,
    TrafficPeriod,
    flag,
    grouped,
    option,
)
from .output import print_document, print_json, say
from .process import check_packages

if TYPE_CHECKING:
    from ..change.app_context import AppContext
    from ..change.comparison import SettingsComparison
    from ..change.effects import EndpointOutcome
    from ..change.verdict import FailsOn
    from ..plan.decisions import Explanation
    from ..plan.stack_minutes import StackMinutes
    from ..report.document import Document, Part
    from ..settings import Settings
    from ..settings.adopted_measurement import AdoptedMeasurement
    from ..simulate import Shape


@dataclass
class PlanOptions:
    """What is planned, and what is shown of it."""

    endpoint: EndpointName = None
    settings: list[str] | None = option(
        "The settings file. With --against REVISION it can be repeated, or be a pattern such as "
        "'endpoints/*.yaml'.",
        metavar="FILE",
        show_default="endpoint.yaml",
    )
    against: str | None = option(
        "Show each difference from this version and what deploying it does. OLD is a settings file "
        "that ends in .yaml. REVISION is a Git revision to compare with the working tree, or "
        "BASE...HEAD to compare HEAD with its merge base, or BASE..HEAD with BASE itself.",
        metavar="OLD|REVISION",
    )
    fail_on: list[str] | None = option(
        "With --against: exit with 1 on refused, replacement, deletion, new-warning, cost-increase "
        "or cost-increase=PERCENT. Can be repeated. Against a revision, invalid settings always "
        "exit with 1.",
        metavar="WHAT",
    )
    detailed_exitcode: bool = flag(
        "With --against: exit codes of terraform plan: 0 no difference, 1 error, 2 differences."
    )
    from_load_test: Path | None = option(
        "Plan with the throughput in a result file of low-latency load-test --find-limit.",
        metavar="FILE",
    )
    peak_tps: float | None = option(
        "With --from-load-test: peak to plan for, if the settings file does not state it.",
        metavar="TPS",
    )
    accept_lower_bound: bool = flag(
        "With --from-load-test: plan with the highest rate tried, even if the load test did not "
        "reach the limit."
    )
    from_canary: bool = flag(
        "Plan with the overhead that the deployed endpoint's canary has measured in a week, in place "
        "of 20 % of the latency target. Reads CloudWatch."
    )
    write: bool = flag(
        "With --from-load-test and --from-canary: write the measured value into the settings file; "
        "of a load test also raise instance counts that are too low. Comments are kept."
    )
    cost: bool = flag(
        "Show only the hourly cost of the stack: at least, at first, at most and in an update."
    )
    traffic: str | None = option(
        "Traffic of a usual day, to estimate the monthly cost: daily-wave, or another shape of "
        "low-latency simulate.",
        metavar="SHAPE",
    )
    traffic_from: Path | None = option(
        "Recorded traffic instead of --traffic: CSV of times and counts, or CloudWatch JSON with "
        "sums of Invocations.",
        metavar="FILE",
    )
    period: TrafficPeriod = None
    minutes: bool = flag("Show only how long AWS takes to create and delete the stack.")
    price: Prices = None
    strict: Strict = False
    verbose: bool = flag("Show every decision with its rule, inputs, notes and source.", short="-v")
    json: Json = False
    markdown: Markdown = False

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.json and self.markdown:
            raise typer.BadParameter("give --json or --markdown, not both")
        if self.from_load_test is None and (self.accept_lower_bound or self.peak_tps is not None):
            raise typer.BadParameter("--peak-tps and --accept-lower-bound go with --from-load-test")
        measured = self.from_load_test is not None or self.from_canary
        if self.from_load_test is not None and self.from_canary:
            raise typer.BadParameter("give --from-load-test or --from-canary, one after the other")
        if self.write and not measured:
            raise typer.BadParameter("--write goes with --from-load-test and --from-canary")
        if measured and self.price:
            raise typer.BadParameter("with measured values, state prices in the settings file")
        if (self.detailed_exitcode or self.fail_on) and self.against is None:
            raise typer.BadParameter("--detailed-exitcode and --fail-on go with --against")
        if self.of_revision and (self.endpoint or measured or self.price):
            raise typer.BadParameter("ENDPOINT, --price and measured values need --against a file")
        check_traffic(self.traffic, self.traffic_from, self.period)
        about_endpoints = self.endpoint or self.against or measured or self.markdown
        whole = self.cost or self.minutes or self.traffic or self.traffic_from
        if whole and about_endpoints:
            raise typer.BadParameter(
                "--cost, --minutes and --traffic are about the whole stack, as text or with --json"
            )

    @property
    def of_revision(self) -> bool:
        """Whether the files are compared with a revision of Git."""
        from ..change.revisions import is_file_name

        return self.against is not None and not is_file_name(self.against)

    @property
    def limits(self) -> list[FailsOn]:
        from ..change.verdict import limit_of

        try:
            return list(dict.fromkeys(map(limit_of, self.fail_on or ())))
        except ValueError as error:
            raise typer.BadParameter(f"--fail-on: {error}") from None

    @property
    def day(self) -> Shape | None:
        """The usual day; none where nobody said what it is like."""
        from ..simulate import shape

        if self.traffic_from is not None:
            return recorded_shape(self.traffic_from, self.period)
        return None if self.traffic is None else shape(self.traffic)


@grouped
def plan(options: PlanOptions) -> None:
    """Show the plan of a settings file. Needs no AWS account.

    Prints a summary and the warnings of each endpoint. --verbose, --json and --markdown explain
    every number. --against shows what deploying the file changes, compared with another file or a
    Git revision: it synthesises both stacks, which needs Node.js. It reads settings and the files
    they name from Git's objects, and runs no code of either revision.

    \b
    Exit codes:
      0  planned; with --detailed-exitcode: no difference
      1  something that --fail-on names; with --strict: a warning;
         with --detailed-exitcode: usage error or invalid file
      2  usage error or invalid settings file; with --detailed-exitcode: differences

    \b
    Examples:
      low-latency plan
      low-latency plan sentiment --json
      low-latency plan --against production.yaml
      low-latency plan --settings new.yaml --against old.yaml --detailed-exitcode
      low-latency plan --against main
      low-latency plan --settings 'endpoints/*.yaml' --against origin/main...HEAD
      low-latency plan --from-load-test result.json --write
      low-latency plan --cost --minutes --price ml.g5.xlarge=1.00
      low-latency plan --cost --traffic-from invocations.json
    """
    with _exit_codes(options):
        names = options.settings or [str(ENDPOINT_YAML)]
        if options.against is not None and options.of_revision:
            _review(names, options, options.against)
            return
        if len(names) > 1:
            raise typer.BadParameter("several settings files need --against REVISION")
        _plan(Path(names[0]), options)


@contextmanager
def _exit_codes(options: PlanOptions) -> Iterator[None]:
    """With --detailed-exitcode an error is 1, as 2 says that there are differences."""
    try:
        options.check()
        yield
    except (LowLatencyEndpointError, typer.BadParameter, OSError) as error:
        if not options.detailed_exitcode:
            raise
        text = error.format_message() if isinstance(error, typer.BadParameter) else str(error)
        say(text, err=True)
        raise typer.Exit(1) from None


def _plan(path: Path, options: PlanOptions) -> None:
    if options.endpoint is not None:
        options.endpoint = _loaded(path, options).key_of(options.endpoint)
    if options.cost or options.minutes:
        _before_a_deploy(path, options)
        return
    adopted = _adopted(path, options)
    settings = _loaded(path, options) if adopted is None else adopted.settings_after
    if adopted is not None and adopted.cautions:
        _say_first(adopted, options)
    different = failed = False
    if options.against is not None:
        comparison, failed = _compared(path, settings, options, options.against)
        different, warned = bool(comparison.differences), bool(comparison.warnings["gained"])
    else:
        warned = _show(path, settings, adopted, options)
    if adopted is not None:
        _adopt(adopted, path, options.write, quiet=options.json or options.markdown)
    _exit(options, failed=failed, different=different, warned=warned)


def _exit(options: PlanOptions, *, failed: bool, different: bool, warned: bool) -> None:
    if failed:
        raise typer.Exit(1)
    if different and options.detailed_exitcode:
        raise typer.Exit(2)
    if warned and options.strict:
        raise typer.Exit(1)


def _adopted(path: Path, options: PlanOptions) -> AdoptedMeasurement | None:
    if options.from_canary:
        check_packages("boto3")
        from .canary_adoption import adopt_overhead

        return adopt_overhead(path, options.endpoint)
    if options.from_load_test is None:
        return None
    from ..load_test.search.settings_file import adopt_limit

    return adopt_limit(
        path,
        options.from_load_test,
        endpoint=options.endpoint,
        peak_tps=options.peak_tps,
        accept_lower_bound=options.accept_lower_bound,
    )


def _show(
    path: Path, settings: Settings, adopted: AdoptedMeasurement | None, options: PlanOptions
) -> bool:
    """Print the plans of a file's endpoints, or of the one that was asked for; whether one warns."""
    from ..settings import explain_variants, shared_resources

    named = options.endpoint
    plans = explain_variants(settings, named) if adopted is None else adopted.after
    if adopted is not None and named is not None:
        plans = {named: plans[named]}
    if options.json:
        data: dict[str, Any] = {
            "settings": str(path),
            "endpoints": {name: plan.to_dict() for name, plan in plans.items()},
        }
        if adopted is None:
            data |= _stack_data(settings, options.day)
            data["shared"] = shared_resources(settings).to_dict()
        else:
            data |= _adopted_data(adopted, options)
        print_json(data)
    else:
        more = _stack_parts(settings, options.day, cost=adopted is None) if named is None else ()
        print_document(
            _document(settings, plans, more, verbose=options.verbose or options.markdown),
            markdown=options.markdown,
        )
        if not (options.verbose or options.markdown):
            say("-v shows every decision with its rule and its source.")
    return any(plan.warnings for plan in plans.values())


def _say_first(adopted: AdoptedMeasurement, options: PlanOptions) -> None:
    """Say what the measured value does not tell, before the plan that rests on it."""
    from ..report.document import Document, Sentence

    sentences = [f"Careful: {adopted.key}: {caution}." for caution in adopted.cautions]
    if options.json:
        say("\n".join(sentences), err=True)
        return
    parts: list[Part] = [Sentence(said, "careful") for said in sentences]
    print_document(Document("", parts), markdown=options.markdown)


def _document(
    settings: Settings, plans: Mapping[str, Explanation], more: Iterable[Part], *, verbose: bool
) -> Document:
    """Each endpoint's plan; then once the warnings that all of several have, and what is shared."""
    from ..plan.decisions import explained, warned
    from ..report.document import Document, Listed, Section

    first, *others = plans.values()
    shared = [
        text for text in first.warnings if others and all(text in each.warnings for each in others)
    ]
    parts: list[Part] = [
        Section(
            f"{name}  {plan['instance_type'].value}", explained(plan, verbose=verbose, said=shared)
        )
        for name, plan in plans.items()
    ]
    if shared:
        parts.append(Section("All endpoints", [Listed(warned(shared), aligned=True)]))
    zones = ", ".join(settings.client_zones.zones)
    return Document(settings.stack_name, [*parts, *more], f"callers in {zones}")


def _stack_parts(settings: Settings, day: Shape | None, *, cost: bool) -> Iterator[Part]:
    """What all endpoints share, and what the stack costs."""
    from ..report.document import Listed, Row, Section
    from ..settings import shared_resources, stack_cost

    lines = [Row(*line) for line in shared_resources(settings).lines()]
    yield Section("Shared by all endpoints", [Listed(lines, aligned=True)])
    if cost:
        found = stack_cost(settings)
        yield total_line(found)
        if day is not None:
            yield along_line(settings, found, day)


def _compared(
    path: Path, after: Settings, options: PlanOptions, against: str
) -> tuple[SettingsComparison, bool]:
    """Print what deploying settings over another file does; whether that fails the command."""
    from ..change.comparison import review
    from ..change.file_review import FileReview
    from ..change.verdict import breaches
    from .plan_changes import compared

    former = Path(against)
    contexts = _context(former), _context(path)
    comparison = review(_loaded(former, options), after, contexts)
    if options.endpoint is not None:
        comparison = comparison.of(options.endpoint)
    names = against, str(path)
    limits = options.limits
    findings = breaches([FileReview.of(names[1], comparison)], limits)
    if options.json:
        verdict = {"verdict": _verdict(findings)} if limits else {}
        data = {"settings": names[1], "against": names[0]}
        print_json(data | comparison.to_dict() | verdict)
    else:
        document = compared(comparison, *names, findings, limits)
        print_document(document, markdown=options.markdown)
    return comparison, bool(findings)


def _context(path: Path) -> AppContext:
    """The context of the CDK app in the folder of a settings file."""
    from ..change.app_context import context_beside

    whole = path.resolve()
    return context_beside(whole, whole.parent, lambda path: True)


def _review(names: list[str], options: PlanOptions, against: str) -> None:
    """Print what settings files do to what a revision of Git has."""
    from glob import escape

    from ..change.file_review import review_files
    from ..change.revisions import Repository, WorkingTree
    from ..change.verdict import breaches
    from .plan_changes import reviewed

    for name in names:
        if any("**" in part and part != "**" for part in Path(name).parts):
            raise typer.BadParameter(f"{name!r}: ** means any folders, and stands alone: **/x.yaml")
    limits = options.limits
    repository = Repository.around(Path.cwd())
    base, head = repository.commits(against)
    here = Path.cwd().resolve().relative_to(repository.root)
    with ExitStack() as folders:  # files are read when they are asked for
        before = folders.enter_context(repository.files_of(base))
        after = (
            folders.enter_context(repository.files_of(head))
            if head
            else WorkingTree(repository.root)
        )
        folder = escape(str(here))
        reviews = review_files([str(Path(folder, name)) for name in names], before, after)
        if not reviews:
            raise typer.BadParameter(f"no settings file is called {', '.join(names)}")
        findings = breaches(reviews, limits)
        named = against.partition("..")[0] or "HEAD"
        against = base[:10] if base.startswith(named) else f"{named} at {base[:10]}"
        if options.json:
            files = [file_review.to_dict() for file_review in reviews]
            print_json({"against": base, "files": files, "verdict": _verdict(findings)})
        else:
            shown = head[:10] if head else "these files"
            document = reviewed(reviews, against, shown, findings, limits)
            print_document(document, markdown=options.markdown)
        different = any(file_review.differs for file_review in reviews)
        warned = any(file_review.gained_warnings for file_review in reviews)
    _exit(options, failed=bool(findings), different=different, warned=warned)


def _verdict(found: list[tuple[FailsOn, str]]) -> dict[str, Any]:
    return {
        "fails": bool(found),
        "because": [{"limit": str(limit), "what": what} for limit, what in found],
    }


def _adopt(adopted: AdoptedMeasurement, settings: Path, write: bool, *, quiet: bool) -> None:
    """Say what the measured value changes, and write it when that was asked for."""
    if not quiet:
        from ..plan.decisions import changed_decisions
        from ..report.document import Code, Document, Listed, Section
        from .plan_changes import decision_table

        parts: list[Part] = [f"{adopted.key}: {adopted.source}: {adopted.how}"]
        if changes := changed_decisions(adopted.before, adopted.after):
            parts.append(Section("", [decision_table(changes, "before", "as measured")]))
        if adopted.raised:
            parts += ["Raised too, as the settings state it:", Listed(adopted.raised)]
        effect, said = _deploying(adopted)
        parts.append(f"Deploying it: {effect.word}: {said}")
        diff, same = adopted.edit.diff(), f"{settings} says so already."
        print_document(Document("", [*parts, Section("", [Code([(diff, "")]) if diff else same])]))
    if not adopted.edit.changed:
        return
    if write:
        from ..settings.yaml_editing import write_edit

        write_edit(adopted.edit)
        say(f"wrote {settings}", err=True)
    else:
        say(f"{settings} is as it was; --write changes it.", err=True)


def _deploying(adopted: AdoptedMeasurement) -> EndpointOutcome:
    """What deploying the written file does to the endpoint, if the file as it was is deployed."""
    from ..change.comparison import review
    from ..change.effects import Effect, EndpointOutcome

    try:
        return review(adopted.settings_before, adopted.settings_after).outcomes[adopted.key]
    except ConfigurationError as error:  # such as without Node.js, which a load test does not need
        return EndpointOutcome(Effect.NOT_KNOWN, str(error).partition("\n")[0])


def _adopted_data(adopted: AdoptedMeasurement, options: PlanOptions) -> dict[str, Any]:
    from ..plan.decisions import changed_decisions

    effect, said = _deploying(adopted)
    file = {} if options.from_canary else {"file": str(options.from_load_test)}
    data: dict[str, Any] = {
        **file,
        "endpoint": adopted.key,
        "source": adopted.source,
        **adopted.measured,
        "how": adopted.how,
        "caution": "; ".join(adopted.cautions),
        "changes": changed_decisions(adopted.before, adopted.after),
        "raised": list(adopted.raised),
        "deploying": {"effect": effect.word, "text": said},
        "diff": adopted.edit.diff(),
        "written": options.write and adopted.edit.changed,
    }
    return {"from_canary" if options.from_canary else "from_load_test": data}


def _before_a_deploy(path: Path, options: PlanOptions) -> None:
    settings = _loaded(path, options)
    if options.json:
        wanted = {"cost": options.cost, "minutes": options.minutes}
        found = {
            name: data for name, data in _stack_data(settings, options.day).items() if wanted[name]
        }
        print_json({"settings": str(path), **found})
        return
    from ..report.document import Document, Sentence
    from ..settings import stack_cost

    cost = cost_parts(settings, stack_cost(settings), options.day) if options.cost else ()
    minutes = [Sentence(str(minute)) for minute in _minutes(settings)] if options.minutes else ()
    print_document(Document("", [*cost, *minutes]))


def _minutes(settings: Settings) -> tuple[StackMinutes, ...]:
    """How long creating and deleting the settings' stack take."""
    from ..plan.stack_minutes import stack_minutes

    return stack_minutes(
        functions=any(each.warm_up or each.canary for each in settings.endpoints.values())
    )


def _stack_data(settings: Settings, day: Shape | None) -> dict[str, Any]:
    minutes = {minute.what: minute.to_dict() for minute in _minutes(settings)}
    return {"cost": cost_data(settings, day), "minutes": minutes}


def _loaded(path: Path, options: PlanOptions) -> Settings:
    from ..settings import load_settings

    return with_prices(load_settings(path), options.price or ())
