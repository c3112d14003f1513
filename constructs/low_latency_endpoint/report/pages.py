"""Pages: one HTML file that loads nothing, on a phone, desk or paper; needs Jinja2."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Literal

from .charts import Chart
from .colours import COLOURS
from .tables import Table

Tone = Literal["good", "careful", "bad", "none"]

# A page loads nothing and sends nothing; it runs the one script whose hash this is.
_POLICY = (
    "default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True)
class Soft:
    """A remark."""

    text: str


@dataclass(frozen=True)
class Listed:
    """A list; ``soft`` in small print."""

    items: Sequence[str]
    soft: bool = False


@dataclass(frozen=True)
class Code:
    """Lines to be copied: each a text and a comment."""

    lines: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class FindingCard:
    """Something that was found: what shows it, what to change, and who says so."""

    title: str  # ``name`` is the page's anchor
    name: str
    tone: str  # bad, careful, good or other
    parts: Sequence[Part]
    tags: Sequence[tuple[str, str]] = ()  # text and tone
    source: str = ""  # A link


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it in one card."""

    title: str
    parts: Sequence[Part]


Part = str | Soft | Listed | Code | Table | Chart | FindingCard | Section


def page(
    title: str,
    parts: Sequence[Part],
    *,
    head: str = "",
    under: str = "",
    verdict: str = "",
    tone: Tone = "good",
) -> str:
    """The page's text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (files(__package__) / "templates" / "pointer.js").read_text("utf-8")
    return environment.get_template("page.html.jinja").render(
        title=title,
        parts=parts,
        head=head or title,
        under=under,
        verdict=verdict,
        tone=tone,
        script=script,
        policy=_POLICY.format(b64encode(sha256(script.encode()).digest()).decode()),
        colours=COLOURS,
    )
