"""Pages of the product as pictures for the docs: SVG files, in which browsers lay out a page's HTML."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from low_latency_endpoint.report.document import Document
from low_latency_endpoint.report.pages import page


def picture(document: Document, element: str, *, height: int) -> str:
    """One element of a document's page, 900 pixels wide; what is below the height is cut off."""
    found = re.search(
        rf"<style>(.*?)</style>.*(<{element}.*</{element}>)", page(document), re.DOTALL
    )
    assert found
    style, body = found.groups()
    style += "pre { white-space: pre-wrap; }"  # nobody scrolls in a picture
    style += " body > figure { padding: 0 12px; }"  # a page has its margin from what is around it
    body = body.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {height}"><foreignObject width="900" '
        f'height="{height}"><body xmlns="http://www.w3.org/1999/xhtml"><style>{style}</style>{body}'
        "</body></foreignObject></svg>\n"
    )


def texts(drawn: str) -> list[str]:
    """What a picture says, but for its style."""
    elements = ElementTree.fromstring(drawn).iter()
    own = (element for element in elements if not element.tag.endswith("style"))
    found = (text for element in own for text in (element.text, element.tail))
    return [text.strip() for text in found if text and text.strip()]
