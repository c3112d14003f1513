"""The groups of options of a settings file."""

from __future__ import annotations

from low_latency_endpoint.options.option import Options, groups_in, options_of
from low_latency_endpoint.settings import Settings


def groups(of: type[Options] = Settings) -> set[type[Options]]:
    """A group of options and all below it."""
    below = {group for option in options_of(of) for group in groups_in(option.kind)}
    return {of}.union(*map(groups, below))
