"""A result as a document, and what draws it: a terminal, an HTML page, Markdown."""

from __future__ import annotations
