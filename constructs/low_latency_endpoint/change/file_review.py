"""Settings files in two revisions: what becomes of each, and whether they go together.

Start with :func:`review_files`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError, LowLatencyEndpointError, SettingsError
from ..errors.frozen import dataclass
from ..facts.paths import OUTSIDE
from ..plan.hourly_cost import StackCost
from ..settings.loading import load_settings
from ..settings.plan_report import explain_variants
from ..settings.stack import Settings
from ..settings.stack_cost import stack_cost_of_a_day
from .app_context import NO_CONTEXT, AppContext, context_beside
from .claims import STACK_NAME, StackClaim, another_stack, claims, same_place
from .comparison import SettingsComparison, at_former_prices, review
from .effects import Effect
from .revisions import REVISION, Revision


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
    taken: tuple[str, ...] = ()  # what a stack that stays has already, with its file
    # of the CDK app, before and after
    contexts: tuple[AppContext, AppContext] = (NO_CONTEXT, NO_CONTEXT)
    # what deploying the one over the other does; ``None`` where one of them is missing
    comparison: SettingsComparison | None = None

    @classmethod
    def of(cls, path: str, comparison: SettingsComparison) -> FileReview:
        """Two files that were compared already."""
        return cls(path, comparison.before, comparison.after, comparison=comparison)

    @property
    def differs(self) -> bool:
        """Whether anything of it differs."""
        return self.comparison is None or self.comparison.differs

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
    single = [_review(path, before, after) for path in _paths(patterns, before, after)]
    staying = [file_review for file_review in single if _stays(file_review, single)]
    compared = [_compared(file_review) for file_review in _by_stack(single)]
    return _held_against_what_stays(_held_against_each_other(compared), staying)


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
    """A file alone, in both revisions."""
    old, new = before.folder / path, after.folder / path
    for file, revision in ((old, before), (new, after)):
        if not revision.holds(file):
            raise OUTSIDE.error(got=path, allowed="a path within the repository")
    was, is_there = old.is_file(), new.is_file()
    former = settings = None
    problems: tuple[str, ...] = ()
    contexts = [NO_CONTEXT, NO_CONTEXT]
    if was:
        try:
            former = load_settings(old, within=before.holds)
            contexts[0] = context_beside(old, before.folder, before.holds)
        except LowLatencyEndpointError as error:
            _not_of_git(error)
            former = None
    if is_there:
        try:
            settings = load_settings(new, within=after.holds)
            contexts[1] = context_beside(new, after.folder, after.holds)
        except SettingsError as error:
            problems = tuple(part.replace(f"{new}", path) for part in error.parts[1:])
        except LowLatencyEndpointError as error:
            _not_of_git(error)
            settings = None
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
        contexts=(contexts[0], contexts[1]),
    )


def _compared(file_review: FileReview) -> FileReview:
    """The review with what its deployment does; with a problem where nothing can be synthesised."""
    before, after = file_review.before, file_review.after
    if after is None:
        return file_review
    comparison = review(before or after, after, file_review.contexts)
    was, now = file_review.contexts
    if before is not None and was.lookups == now.lookups and comparison.is_unchanged:
        return replace(file_review, comparison=comparison)
    try:
        _ = comparison.later.template
    except ConfigurationError as error:
        return replace(file_review, after=None, problems=(str(error),))
    if before is None:
        return file_review
    try:
        _ = comparison.stack
    except ConfigurationError:
        return replace(file_review, before=None, before_is_wrong=True)
    return replace(file_review, comparison=comparison)


def _not_of_git(error: LowLatencyEndpointError) -> None:
    """Raise what Git or the disk could not do: it is no mistake of the settings."""
    if isinstance(error, ConfigurationError) and error.code == REVISION.code:
        raise error


def _by_stack(reviews: list[FileReview]) -> list[FileReview]:
    """Each file compared with what its stack was before, whichever file described that."""
    paired: list[FileReview] = []
    taken: set[str] = set()
    for file_review in reviews:
        former = _former_file(file_review, reviews)
        if former is not None:
            taken.add(former.path)
            contexts = former.contexts[0], file_review.contexts[1]
            file_review = replace(
                file_review,
                before=former.before,
                contexts=contexts,
                is_new=False,
                before_is_wrong=False,
            )
        paired.append(file_review)
    return [
        file_review
        for file_review in paired
        if not (file_review.is_deleted and file_review.path in taken)
    ]


def _former_file(file_review: FileReview, reviews: list[FileReview]) -> FileReview | None:
    """The other file that described the stack until it was deleted, or got another stack."""
    if file_review.after is None or (
        file_review.before and not another_stack(file_review.before, file_review.after)
    ):
        return None
    leaving = (other for other in reviews if other.before and _leaves_its_stack(other))
    for other in leaving:
        if other.before and not another_stack(other.before, file_review.after):
            return other
    return None


def _held_against_each_other(reviews: list[FileReview]) -> list[FileReview]:
    """With a mistake at each file that claims what another file claims too."""
    by_claim: dict[StackClaim, list[tuple[FileReview, Settings]]] = {}
    for one in reviews:
        if one.after is not None:
            own_stack = StackClaim(STACK_NAME, one.after.stack_name)
            for claim in (own_stack, *claims(one.after)):
                by_claim.setdefault(claim, []).append((one, one.after))
    problems: dict[str, list[str]] = {}
    for claim, claiming in by_claim.items():
        for file_review, settings in claiming:
            others = [
                other.path
                for other, theirs in claiming
                if other is not file_review and same_place(settings, theirs)
            ]
            if others:
                problems.setdefault(file_review.path, []).append(
                    f"{claim} is that of {', '.join(others[:3])} too: {claim.why}"
                )
    return [
        replace(file_review, problems=(*file_review.problems, *problems.get(file_review.path, ())))
        for file_review in reviews
    ]


def _stays(file_review: FileReview, reviews: list[FileReview]) -> bool:
    """Whether no file describes a former stack any more, so that it stays as it is."""
    former = file_review.before
    later = [other.after for other in reviews if other.after is not None]
    return former is not None and all(another_stack(former, settings) for settings in later)


def _held_against_what_stays(
    reviews: list[FileReview], staying: list[FileReview]
) -> list[FileReview]:
    """With what a file claims anew, and a stack that nobody deletes has."""
    return [
        replace(file_review, taken=tuple(_taken(file_review, staying))) for file_review in reviews
    ]


def _leaves_its_stack(file_review: FileReview) -> bool:
    """Whether a file describes its former stack no more."""
    if file_review.before is None or file_review.after is None:
        return file_review.is_deleted
    return another_stack(file_review.before, file_review.after)


def _taken(file_review: FileReview, staying: list[FileReview]) -> Iterator[str]:
    """The claims, each with the file that described the stack which has it."""
    if file_review.after is None:
        return
    former = file_review.before
    stays_here = former is not None and not another_stack(former, file_review.after)
    own = set(claims(former)) if former and stays_here else set()
    for other in staying:
        if other.path == file_review.path or not other.before:
            continue
        if not same_place(file_review.after, other.before):
            continue
        theirs = set(claims(other.before))
        for claim in claims(file_review.after):
            if claim in theirs - own:
                yield f"{claim} of {other.before.stack_name} ({other.path})"
