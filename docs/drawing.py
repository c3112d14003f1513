"""Pictures for the docs in plain SVG, which every browser, preview and package index shows.

No script, no font from elsewhere, no HTML inside. They take the colours of the reader's system, and are
560 wide with letters that a phone's width leaves readable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

from low_latency_endpoint.report.charts import COLOURS

Place = tuple[float, float, float, float]  # x, y, width and height
WIDTH = 560
SMALLEST = 15  # a phone shows 358 of 560 pixels: 9.6
FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
MONO = "Menlo, Consolas, 'Liberation Mono', monospace"
#: By name: on light paper, and on dark.
PAINTS = {
    **COLOURS,
    "page": ("#ffffff", "#0d1117"),
    "card": ("#f6f7f9", "#1a2028"),
    "rule": ("#d5d9e0", "#39424e"),
    "soft": ("#5f6876", "#9aa4b2"),
    "good": ("#166a41", "#35b27a"),
    "bad": ("#b3261e", "#ff7468"),
    "careful": ("#8a5a00", "#e0a93b"),
    "other": ("#984479", "#dd8fbd"),
    "none": ("none", "none"),
}
_TINTS = {"blue": ("#e3f0f9", "#12293a"), "green": ("#e0f4ec", "#10302a")}
_TINTS |= {"purple": ("#f7e9f2", "#33202d"), "orange": ("#fdf1dc", "#352810")}
PAINTS |= {f"{name}-tint": paints for name, paints in _TINTS.items()}
_WIDTHS = {**dict.fromkeys("ijl.,:;'|!`", 0.28), **dict.fromkeys('ftrI()[]- /"', 0.36)}
_WIDTHS |= {
    **dict.fromkeys("ckszvxyJ", 0.5),
    **dict.fromkeys("mwMWO@%…—", 0.89),
    **dict.fromkeys("ABCDEGHKNPQRSUVXYZ&", 0.7),
}


def length(text: str, size: float, *, mono: bool = False, bold: bool = False) -> float:
    """How wide a text is at most: by Helvetica's letters, or Menlo's, and a little more."""
    if mono:
        return 0.61 * size * len(text)
    widths = (_WIDTHS.get(letter, 0.56) for letter in text)
    return (1.08 if bold else 1.02) * size * sum(widths)


def wrapped(
    text: str, width: float, size: float, *, mono: bool = False, bold: bool = False
) -> list[str]:
    """The text in lines that are no wider; paths break at their marks too."""
    lines = [""]
    for word in re.findall(r"[^\s/:]*[/:]+\s*|[^\s/:]+\s*", text):
        if lines[-1] and length(lines[-1] + word.rstrip(), size, mono=mono, bold=bold) > width:
            lines.append("")
        for letter in word:
            if length((lines[-1] + letter).rstrip(), size, mono=mono, bold=bold) > width:
                lines.append("")
            lines[-1] += letter
    return [line.rstrip() for line in lines]


@dataclass(frozen=True)
class Look:
    """A box's paints, and the resource types that it stands for."""

    fill: str = "card"
    stroke: str = "rule"
    dashed: bool = False
    types: str = ""


class Drawing:
    """Shapes and texts in the order in which they are drawn."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.shapes: list[str] = []

    def box(self, place: Place, look: Look) -> None:
        """A rectangle."""
        x, y, width, height = place
        types = f' data-types="{look.types}"' if look.types else ""
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" '
            f'class="f-{look.fill} s-{look.stroke}{" dashed" if look.dashed else ""}"{types}/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = SMALLEST,
        colour: str = "ink",
        bold: bool = False,
        mono: bool = False,
        anchor: str = "start",
    ) -> None:
        """A line of text whose letters stand on y."""
        looks = f"{' bold' if bold else ''}{' mono' if mono else ''}"
        anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}"{anchored} class="f-{colour}{looks}">'
            f"{escape(text, quote=False)}</text>"
        )

    def labelled(self, place: Place, look: Look, heading: str, *lines: str) -> None:
        """A box with a bold heading and lines below it, all in its middle."""
        x, y, width, height = place
        self.box(place, look)
        first = y + height / 2 - 10 * len(lines) + 5
        self.text(x + width / 2, first, heading, bold=True, anchor="middle")
        for number, line in enumerate(lines, 1):
            self.text(x + width / 2, first + 20 * number, line, colour="soft", anchor="middle")

    def path(
        self, d: str, stroke: str = "ink", *, arrow: bool = False, dashed: bool = False
    ) -> None:
        """A line along a path."""
        end = ' marker-end="url(#arrow)"' if arrow else ""
        looks = f"line s-{stroke}{' dashed' if dashed else ''}"
        self.shapes.append(f'<path d="{d}" class="{looks}"{end}/>')

    def svg(self, height: float, width: float = WIDTH) -> str:
        """The whole picture."""
        shapes = "\n".join(self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" font-family="{FONT}" role="img">\n'
            f"<title>{escape(self.title, quote=False)}</title>\n<style>\n{self._style()}\n</style>\n"
            '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
            'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
            '<path d="M0 0 10 5 0 10z" class="f-ink s-none"/></marker></defs>\n'
            f'<rect width="{width:g}" height="{height:g}" rx="8" class="f-page s-none"/>\n{shapes}\n</svg>\n'
        )

    def _style(self) -> str:
        """Rules for the classes in use, for light paper and for dark."""
        names = set(re.findall(r"[fs]-[a-z][a-z-]*", "".join(self.shapes)))
        names |= {"f-page", "f-ink", "s-none"}
        light, dark = ("\n".join(_rules(sorted(names), number)) for number in (0, 1))
        return (
            f".line {{ fill: none; stroke-width: 1.7; }} .dashed {{ stroke-dasharray: 5 4; }}\n"
            f".bold {{ font-weight: bold; }} .mono {{ font-family: {MONO}; }}\n"
            ".plot { vector-effect: non-scaling-stroke; }\n"
            f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
        )


def _rules(names: Iterable[str], number: int) -> Iterator[str]:
    for name in names:
        kind, _, paint = name.partition("-")
        if paint in PAINTS:
            yield f".{name} {{ {'fill' if kind == 'f' else 'stroke'}: {PAINTS[paint][number]}; }}"
