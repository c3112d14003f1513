"""Settings files in two revisions: what becomes of each, and whether they go together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import ConfigurationError, LowLatencyEndpointError, SettingsError
from ...errors.frozen import dataclass
from ...facts.paths import OUTSIDE
from ...options.option import Effect
from ...plan.hourly_cost import StackCost
from ...plan.plan import Plan
from ..endpoint import volume_of
from ..loading import load_settings
from ..plan_report import explain_variants
from ..stack import Settings
from ..stack_parts import stack_cost_of_a_day
from ..variant_plans import planned_variants
from .claims import STACK_NAME, StackClaim, claims, same_place
from .comparison import SettingsComparison, at_former_prices, compare
from .endpoint_fields import SettingDifference
from .former_measurements import measured_in_the_change_alone
from .revisions import REVISION, Revision
from .shared_fields import another_stack


@dataclass(frozen=True)
class FileReview:
    """A settings file in two revisions."""

    path: str  # from the repository's folder
    before: Settings | None  # ``None`` where there is no such file, or one with mistakes
    after: Settings | None
    problems: tuple[str, ...] = ()  # the mistakes of the later one
    is_new: bool = False
    is_deleted: bool = False
    # whether the former file has mistakes, so that there is nothing to compare with
    before_is_wrong: bool = False
    folders: tuple[Path, ...] = ()  # of both revisions
    taken: tuple[str, ...] = ()  # what a stack that stays has already, with its file

    @classmethod
    def of(cls, path: str, comparison: SettingsComparison) -> FileReview:
        """Two files that were compared already."""
        made = cls(path, comparison.before, comparison.after)
        made.__dict__["comparison"] = comparison
        return made

    @property
    def differs(self) -> bool:
        """Whether anything of it differs."""
        return self.comparison is None or bool(self.comparison.differences)

    @cached_property
    def comparison(self) -> SettingsComparison | None:
        """What deploying the one over the other does; ``None`` where one of them is missing."""
        if self.before is None or self.after is None:
            return None
        found = compare(self.before, self.after)
        return replace(found, differences=tuple(map(self._within, found.differences)))

    def _within(self, difference: SettingDifference) -> SettingDifference:
        """The difference with paths from the repository's folder, wherever the revisions lie."""

        def plain(text: str) -> str:
            for folder in self.folders:
                text = text.replace(f"{folder}/", "")
            return text

        before, after = plain(difference.before), plain(difference.after)
        if before == after != difference.after:
            after = f"{after} (other content)"
        consequences = tuple(
            effect._replace(text=plain(effect.text)) for effect in difference.consequences
        )
        return replace(difference, before=before, after=after, consequences=consequences)

    @property
    def effect(self) -> Effect:
        """The greatest of all differences."""
        if self.taken:
            return Effect.REFUSED
        if self.comparison is not None:
            return self.comparison.effect
        if self.is_deleted:
            return Effect.DELETED
        return Effect.NEW if self.is_new and self.after else Effect.NOT_KNOWN

    @property
    def refusal(self) -> str:
        """Why its deployment fails; empty where no stack that stays has what it claims."""
        if not self.taken:
            return ""
        return (
            f"the deployment fails: the stack that stays has {', '.join(self.taken)}, "
            "until somebody deletes it"
        )

    @property
    def gained_warnings(self) -> list[tuple[str, str]]:
        """Endpoint and text of the warnings that were not there before."""
        if self.comparison is not None:
            return self.comparison.warnings["gained"]
        if self.after is None:
            return []
        plans = explain_variants(self.after).items()
        return [(key, str(warning)) for key, plan in plans for warning in plan.warnings]

    @cached_property
    def costs(self) -> tuple[StackCost, StackCost]:
        """What both cost for an hour; nothing where there is none.

        Whoever deletes a file deletes no stack.
        """
        if self.comparison is not None:
            return self.comparison.costs
        nothing = StackCost(endpoints={})
        before = stack_cost_of_a_day(self.before) if self.before else nothing
        if self.is_deleted:
            return before, before
        after = self.after and at_former_prices(None, self.after)
        return before, stack_cost_of_a_day(after) if after else nothing

    def to_dict(self) -> dict[str, Any]:
        """The review as JSON-safe data."""
        state = "new" if self.is_new else "deleted" if self.is_deleted else "in both"
        before, after = self.costs
        found = (
            self.comparison.to_dict()
            if self.comparison
            else {
                "effect": self.effect.word,
                "cost": {"before": before.to_dict(), "after": after.to_dict()},
            }
        )
        return {
            "settings": self.path,
            "file": state,
            "problems": list(self.problems),
            "before_has_mistakes": self.before_is_wrong,
            **found,
        }


def review_files(patterns: Iterable[str], before: Revision, after: Revision) -> list[FileReview]:
    """Read settings files in two revisions; a moved one is compared with the former file."""
    found = [_review(path, before, after) for path in _paths(patterns, before, after)]
    staying = [review for review in found if _stays(review, found)]
    return _held_against_what_stays(_held_against_each_other(_by_stack(found)), staying)


def _paths(patterns: Iterable[str], before: Revision, after: Revision) -> list[str]:
    found: dict[str, None] = {}
    for pattern in patterns:
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            raise OUTSIDE.error(got=pattern, allowed="a path within the repository")
        if any(each in pattern for each in "*?["):
            for revision in (after, before):
                found |= dict.fromkeys(revision.matching(pattern))
        else:
            found[str(Path(pattern))] = None
    return list(found)


def _review(path: str, before: Revision, after: Revision) -> FileReview:
    old, new = before.folder / path, after.folder / path
    for file, revision in ((old, before), (new, after)):
        if not revision.holds(file):
            raise OUTSIDE.error(got=path, allowed="a path within the repository")
    was, is_there = old.is_file(), new.is_file()
    former = settings = None
    problems: tuple[str, ...] = ()
    if was:
        try:
            former = load_settings(old, within=before.holds)
        except LowLatencyEndpointError as error:
            _not_of_git(error)
    if is_there:
        try:
            settings = load_settings(new, within=after.holds)
        except SettingsError as error:
            problems = tuple(part.replace(f"{new}", path) for part in error.parts[1:])
        except LowLatencyEndpointError as error:
            _not_of_git(error)
            problems = (str(error),)
    elif not was:
        problems = ("there is no such file, neither before nor after",)
    return FileReview(
        path,
        former,
        settings,
        tuple(problem.replace(f"{after.folder}/", "") for problem in problems),
        is_new=is_there and not was,
        is_deleted=was and not is_there,
        before_is_wrong=was and former is None,
        folders=(before.folder, after.folder),
    )


def _not_of_git(error: LowLatencyEndpointError) -> None:
    """Raise what Git or the disk could not do: it is no mistake of the settings."""
    if isinstance(error, ConfigurationError) and error.code == REVISION.code:
        raise error


def _by_stack(reviews: list[FileReview]) -> list[FileReview]:
    """Each file compared with what its stack was before, whichever file described that."""
    paired: list[FileReview] = []
    taken: set[str] = set()
    for review in reviews:
        former = _former_file(review, reviews)
        if former is not None:
            taken.add(former.path)
            review = replace(review, before=former.before, is_new=False, before_is_wrong=False)
        paired.append(review)
    return [review for review in paired if not (review.is_deleted and review.path in taken)]


def _former_file(review: FileReview, reviews: list[FileReview]) -> FileReview | None:
    """The other file that described the stack until it was deleted, or got another stack."""
    if review.after is None or (review.before and not another_stack(review.before, review.after)):
        return None
    leaving = (other for other in reviews if other.before and _leaves_its_stack(other))
    for other in leaving:
        if other.before and not another_stack(other.before, review.after):
            return other
    return None


def _held_against_each_other(reviews: list[FileReview]) -> list[FileReview]:
    """With a mistake at each file that claims what another file claims too."""
    by_claim: dict[StackClaim, list[tuple[FileReview, Settings]]] = {}
    for each in reviews:
        if each.after is not None:
            own_stack = StackClaim(STACK_NAME, each.after.stack_name)
            for claim in (own_stack, *claims(each.after)):
                by_claim.setdefault(claim, []).append((each, each.after))
    problems: dict[str, list[str]] = {}
    for claim, claiming in by_claim.items():
        for review, settings in claiming:
            others = [
                other.path
                for other, theirs in claiming
                if other is not review and same_place(settings, theirs)
            ]
            if others:
                problems.setdefault(review.path, []).append(
                    f"{claim} is that of {', '.join(others[:3])} too: {claim.why}"
                )
    return [
        replace(file_review, problems=(*file_review.problems, *problems.get(file_review.path, ())))
        for file_review in reviews
    ]


def _stays(review: FileReview, reviews: list[FileReview]) -> bool:
    """Whether no file describes a former stack any more, so that it stays as it is."""
    former = review.before
    later = [other.after for other in reviews if other.after is not None]
    return former is not None and all(another_stack(former, settings) for settings in later)


def _held_against_what_stays(
    reviews: list[FileReview], staying: list[FileReview]
) -> list[FileReview]:
    """With what a file claims anew, and a stack that nobody deletes has."""
    return [replace(review, taken=tuple(_taken(review, staying))) for review in reviews]


def _leaves_its_stack(review: FileReview) -> bool:
    """Whether a file describes its former stack no more."""
    if review.before is None or review.after is None:
        return review.is_deleted
    return another_stack(review.before, review.after)


def _taken(review: FileReview, staying: list[FileReview]) -> Iterator[str]:
    """The claims, each with the file that described the stack which has it."""
    if review.after is None:
        return
    former = review.before
    stays_here = former is not None and not another_stack(former, review.after)
    own = set(claims(former)) if former and stays_here else set()
    for other in staying:
        if other.path == review.path or not other.before:
            continue
        if not same_place(review.after, other.before):
            continue
        theirs = set(claims(other.before))
        for claim in claims(review.after):
            if claim in theirs - own:
                yield f"{claim} of {other.before.stack_name} ({other.path})"


MISTAKES = "mistakes"
FAIL_ON = {
    "refused": "a change that the deployment fails with",
    "replacement": "something that is replaced: callers of the old one fail",
    "deletion": "something that is deleted, or a settings file that is",
    "new-warning": "a warning that was not there before",
    "cost-increase": "an hour that costs more, by more than =PERCENT",
}
"""What a team can choose, and what it means. Mistakes in the settings fail in any case."""

_STANDING = ("at_least", "at_first", "at_most")  # an update is over in minutes
_EFFECTS = {"refused": Effect.REFUSED, "replacement": Effect.REPLACED, "deletion": Effect.DELETED}


class FailsOn(NamedTuple):
    """One thing to fail on."""

    what: str  # A key of :data:`FAIL_ON`, or :data:`MISTAKES`
    percent: float = 0.0  # by how much more something may be, where it is an increase

    def __str__(self) -> str:
        return f"{self.what}={self.percent:g}" if self.percent else self.what


def limit_of(text: str) -> FailsOn:
    """What a text such as ``cost-increase=10`` means."""
    what, has_percent, percent = text.strip().partition("=")
    if what not in FAIL_ON:
        raise ValueError(f"{text!r} is none of {', '.join(FAIL_ON)}")
    if not has_percent:
        return FailsOn(what)
    if what != "cost-increase":
        raise ValueError(f"{what} takes no percentage")
    try:
        value = float(percent.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e6:
        raise ValueError(f"{percent!r} is no percentage from 0")
    return FailsOn(what, value)


def breaches(reviews: Iterable[FileReview], limits: Iterable[FailsOn]) -> list[tuple[FailsOn, str]]:
    """What the files fail because of; nothing when they pass."""
    limits = [FailsOn(MISTAKES), *limits]
    return [
        (limit, f"{file_review.path}: {text}")
        for file_review in reviews
        for limit in limits
        for text in _found(file_review, limit)
    ]


def _found(review: FileReview, limit: FailsOn) -> Iterator[str]:
    if limit.what == MISTAKES:
        count = len(review.problems)
        if count:
            yield f"{count} mistake{'s' * (count != 1)} in the settings"
    elif limit.what == "new-warning":
        for key, text in review.gained_warnings:
            yield f"{key}: {text}"
    elif limit.what == "cost-increase":
        yield from _dearer(review, limit.percent)
    elif review.before_is_wrong and not review.problems:
        yield "the former file has mistakes, so nobody knows what the change does"
    else:
        yield from _effects(review, _EFFECTS[limit.what])


def _effects(review: FileReview, effect: Effect) -> Iterator[str]:
    if review.is_deleted and effect is Effect.DELETED:
        yield "the settings file is deleted"
    if review.taken and effect is Effect.REFUSED:
        yield review.refusal
    if review.comparison is None:
        return
    found = [
        f"{difference.endpoint or 'all endpoints'}: {consequence.text}"
        for difference in review.comparison.differences
        for consequence in difference.consequences
        if consequence.effect is effect
    ]
    yield from dict.fromkeys(found)


def _dearer(review: FileReview, percent: float) -> Iterator[str]:
    """Where it costs more; where nobody knows what more of something costs, that too."""
    comparison = review.comparison
    if review.after is None:
        return
    before, after = review.costs
    moved = comparison is not None and comparison.is_moved
    yield from _more(before, after, percent, moved=moved)
    if comparison is None:
        return
    for text in _more_of_what_has_no_price(comparison.before, comparison.after):
        yield f"more is billed, and what that costs is not known: {text}"
    for text in _scaled_otherwise(comparison.before, comparison.after, before, after):
        yield f"what a day costs is not known, and the change scales otherwise: {text}"
    for how, settings in comparison.as_stated_before.items():
        try:
            former = comparison.deployed_cost(settings)
        except LowLatencyEndpointError as error:
            yield f"{how} the plan does not hold: {error}"
        else:
            yield from _more(before, former, percent, f" {how}", moved=moved)
    alone = [*measured_in_the_change_alone(comparison.before, comparison.after)]
    if alone:
        yield (
            "what it costs is not known without a former load-test result of one "
            f"{', one '.join(alone)}"
        )


def _more(
    before: StackCost, after: StackCost, percent: float, how: str = "", *, moved: bool
) -> Iterator[str]:
    """Where so many percent more are billed, and where more is at a price that is not known."""
    for moment in _STANDING:
        was, now = before.usd(moment), after.usd(moment)
        if was is None or now is None:
            continue
        if now > was * (1 + percent / 100) + 0.005:  # half a cent is rounding
            yield f"{moment.replace('_', ' ')} {was:,.2f} -> {now:,.2f} US dollars per hour{how}"
    was, now = _along_a_day(before, after)
    if was is not None and now is not None and now > was * (1 + percent / 100) + 0.005:
        yield (
            f"along a day of traffic like daily-wave {was:,.2f} -> {now:,.2f} US dollars per "
            f"hour{how}"
        )
    unknown = _day_not_known(before, after)
    if unknown:
        yield f"what a day costs is no longer known{how}: {', '.join(unknown)}"
    missing = _grown_without_price(before, after, moved=moved)
    if missing:
        yield (
            f"more is billed{how}, and what that costs is not known without prices of "
            f"{', '.join(missing)} in the former settings"
        )


def _along_a_day(before: StackCost, after: StackCost) -> tuple[float | None, float | None]:
    """US dollars per hour along a day, before and after, of what can be compared.

    An endpoint that only one of both knows the day of is left out: :func:`_scaled_otherwise` asks
    for it.
    """
    known = before.known_along_a_day, after.known_along_a_day
    was = [key for key in before.endpoints if key in known[0] - (after.endpoints.keys() - known[1])]
    now = [key for key in after.endpoints if key in known[1] - (before.endpoints.keys() - known[0])]
    return before.usd_on_average(was), after.usd_on_average(now)


def _day_not_known(before: StackCost, after: StackCost) -> list[str]:
    """The endpoints whose fleet along a day was known, or that are new, and is not known now."""
    settled = before.endpoints.keys() - before.known_along_a_day
    unknown = after.endpoints.keys() - after.known_along_a_day
    return [key for key in after.endpoints if key in unknown - settled]


def _scaled_otherwise(
    before: Settings, after: Settings, cost_before: StackCost, cost_after: StackCost
) -> Iterator[str]:
    """The variants that may run longer at more instances, and whose days cannot be compared.

    Those on requests in flight, and those with steps or with set times that no day counts.
    """
    known = cost_before.known_along_a_day & cost_after.known_along_a_day
    former = {variant.label: variant.plan for variant in planned_variants(before)}
    for variant in planned_variants(after):
        plan = former.get(variant.label)
        if plan is None or variant.label in known:
            continue
        if _may_scale_further(plan, variant.plan):
            yield variant.label


def _may_scale_further(before: Plan, after: Plan) -> bool:
    """Whether a fleet may stand higher within the same range, for the same requests."""
    now, was = after.scaling, before.scaling
    if now is None:
        return False
    if was is None or now.metric != was.metric or now.target < was.target:
        return True
    if now.scale_in_seconds > was.scale_in_seconds or after.schedule != before.schedule:
        return True
    if _types(after) != _types(before) or _share(after) > _share(before):
        return True
    steps = after.request.scaling.steps
    return steps is not None and steps != before.request.scaling.steps


def _types(plan: Plan) -> tuple[Any, ...]:
    """The instance types of a variant, of which each may hold another number of requests."""
    serving = plan.request.serving
    return serving.instance_type, serving.instance_pools


def _share(plan: Plan) -> Fraction:
    """The part of the endpoint's requests that a variant gets."""
    share = plan.request.share
    return Fraction(1) if share is None else share.fraction


def _more_of_what_has_no_price(before: Settings, after: Settings) -> Iterator[str]:
    """What the settings state more of, and no price of this library is for."""
    volumes = _volumes(before)
    for label, gib in _volumes(after).items():
        if gib > volumes.get(label, 0):
            yield f"the disks of {label}: {volumes.get(label, 0):,} -> {gib:,} GiB each"
    captured = _captured(before)
    for (key, body), percent in _captured(after).items():
        former = captured.get((key, body), 0)
        if percent > former:
            yield f"the captured data of {key}, {body}: {former} -> {percent} % of requests"


def _volumes(settings: Settings) -> dict[str, int]:
    """The stated GiB of each instance's disk, by variant; 0 where SageMaker chooses."""
    return {
        variant.label: volume_of(
            settings.endpoints[variant.key], variant.further.settings if variant.further else None
        )
        or 0
        for variant in planned_variants(settings)
    }


def _captured(settings: Settings) -> dict[tuple[str, str], float]:
    """Per cent of the requests of each endpoint of which input or output is captured."""
    shares: dict[tuple[str, str], float] = {}
    for key, endpoint in settings.endpoints.items():
        capture = endpoint.data_capture
        for body in capture.capture if capture else ():
            shares[key, body] = capture.sampling_percentage if capture else 0
    return shares


def _grown_without_price(before: StackCost, after: StackCost, *, moved: bool) -> list[str]:
    """The prices that are missing to know whether the change costs more; none where it cannot.

    Without the sum of either side any growth counts, as nobody knows what share of it it is.
    """
    former = {} if moved else _billed(before)  # another Region has other prices
    grown = [
        names
        for names, units in _billed(after).items()
        if any(now > was for now, was in zip_longest(units, former.get(names, ()), fillvalue=0))
    ]
    missing = [name for names in grown for name in names if name not in after.prices]
    sums = [cost.usd(moment) for cost in (before, after) for moment in _STANDING]
    if grown and None in sums:
        missing += [*before.without_price, *after.without_price]
    return list(dict.fromkeys(missing))


def _billed(cost: StackCost) -> dict[tuple[str, ...], list[float]]:
    """How much of what is billed in an hour, by its price or those of its instance types."""
    billed: dict[tuple[str, ...], list[float]] = {}
    for endpoint in cost.endpoints.values():
        names = tuple(kind.instance_type for kind in endpoint.types)
        units = [float(endpoint.instances(moment)) for moment in _STANDING]
        _add(billed, names, [*units, endpoint.on_average or 0.0])
    for item in cost.items:
        _add(billed, (item.item,), [item.per_hour])
    return billed


def _add(
    billed: dict[tuple[str, ...], list[float]], names: tuple[str, ...], units: list[float]
) -> None:
    billed[names] = [sum(pair) for pair in zip_longest(billed.get(names, ()), units, fillvalue=0)]
