"""The diagnosis as one self-contained HTML page: charts and their library inside.

Needs the ``report`` extra (Jinja2, plotly).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import ConfigurationError
from .diagnosis import Diagnosis, split
from .members import members
from .options import PAGE_WRITTEN
from .terminal import verdict
from .view import milliseconds, percent

__all__ = ["page", "write_page"]


def page(diagnosis: Diagnosis) -> str:
    """The page's text; it loads nothing from anywhere."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from plotly.offline import get_plotlyjs

    from .charts import figure

    environment = Environment(loader=PackageLoader(__package__, "templates"), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    m = diagnosis.measurements
    variants = []
    for variant in m.variants:
        made = figure(diagnosis, variant)
        variants.append({
            "reading": variant, "split": split(m, variant),
            "members": [(word, found) for word, found in (
                ("Zone", members(variant.zones)), ("Instance", members(variant.instances)))
                if found],
            "requests": variant.get("Invocations", "Sum").sum,
            "chart": chart_html(made, variant.name) if made is not None else "",
        })
    return environment.get_template("page.html.jinja").render(
        diagnosis=diagnosis, m=m, verdict=verdict(diagnosis), variants=variants,
        milliseconds=milliseconds, percent=percent, plotly=get_plotlyjs(),
    )


def write_page(diagnosis: Diagnosis, path: Path) -> None:
    """Write the page.

    Raises
    ------
    ConfigurationError
        ``LLE588`` when the file cannot be written.
    """
    text = page(diagnosis)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return PAGE_WRITTEN.error(got=f"{path}: {error.strerror or error}", allowed="a file")


def chart_html(made: Any, name: str) -> str:
    """A plotly figure as a part of a page that has plotly's script already."""
    text: str = made.to_html(
        full_html=False, include_plotlyjs=False, div_id=f"chart-{name}",
        config={"displaylogo": False, "responsive": True,
                "modeBarButtonsToRemove": ["lasso2d", "select2d"]})
    return text
