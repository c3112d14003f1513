"""What people look at: pages, charts, terminal tables, numbers. Imports jinja2 and rich."""

from __future__ import annotations
