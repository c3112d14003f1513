"""What people look at: pages, charts, terminal tables, numbers. Imports jinja2 and rich, not ours.

A page, a table and a chart are data here; who has something to show says what, not how it looks.
Each is drawn in one place: :mod:`.pages`, :mod:`.charts` and :mod:`.tables`.
"""

from __future__ import annotations
