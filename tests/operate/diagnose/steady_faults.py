"""The injected faults of endpoints that nobody updates: what is wrong, and the finding it must produce."""

from __future__ import annotations

from .faults import containers, deployments, full_fleets, instances

_ROWS = instances.ROWS | full_fleets.ROWS | containers.ROWS | deployments.ROWS
FAULTS = tuple(row(*key.split(": ", 1)) for key, row in _ROWS.items())
