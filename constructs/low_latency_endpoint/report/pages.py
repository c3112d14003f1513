"""Pages: one HTML file that loads nothing, on a phone, desk or paper; needs Jinja2."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from .charts import COLOURS
from .document import Document, visible_document

# A page loads nothing and sends nothing; it runs the one script whose hash this is.
_POLICY = (
    "default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def page(document: Document) -> str:
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
        document=visible_document(document),
        script=script,
        policy=_POLICY.format(b64encode(sha256(script.encode()).digest()).decode()),
        colours=COLOURS,
    )
