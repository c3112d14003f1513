"""``low-latency``: the command line.

One module per command; each imports what it needs when it runs, so that ``--help`` is immediate
and no command pays for another's libraries. This module imports next to nothing, so that Ctrl-C is
heard from the beginning.

Exit codes: 0 fine, 1 the command ran and found something wrong, 2 usage or configuration error,
130 interrupted. ``plan --against --detailed-exitcode`` has Terraform's: 0 no difference, 1 error,
2 differences.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # as typing's, whose import alone takes longer than all of this module
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .application import app

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(name)
    from .application import app

    return app


def __dir__() -> list[str]:
    return __all__


def main() -> None:
    """Run the command line; the entry point of ``low-latency``."""
    if sys.stdout is not sys.__stdout__:  # within another program, such as a test
        from .process import guarded

        sys.exit(guarded(sys.modules[__name__].app))
    # Until a command begins there is nothing to clean up, and an exception could strike where
    # Python only prints it. A process that inherited SIGINT ignored hears it, too, from here on.
    signal.signal(signal.SIGINT, _leave)
    from .process import guarded, use_streams, use_width

    use_streams()
    use_width()
    code = guarded(sys.modules[__name__].app)
    signal.signal(signal.SIGINT, _leave)
    sys.exit(code)


def _leave(*_: object) -> NoReturn:
    os._exit(128 + signal.SIGINT)
