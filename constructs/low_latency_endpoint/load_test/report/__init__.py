"""The load test's page: one HTML file with its charts and their library inside."""

from __future__ import annotations

from .page import page, write_page

__all__ = ["page", "write_page"]
