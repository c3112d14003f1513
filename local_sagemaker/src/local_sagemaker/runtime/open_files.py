"""How many files this process may open, and how many connections it takes with them."""

from __future__ import annotations

import contextlib
import os
import resource
import sys

_MOST_CONNECTIONS = 4096
_FILES_OF_A_REQUEST = 4
"""Its connection and that to a model server; caller and model server may be in this process too."""
_OTHER_FILES = 200
"""What else is open, and connections whose request is refused; half of what there is, if less."""
_CROWDED = 0.8
"""Of the files that this process may open: from there on a new connection ends an idle one."""


def most_connections() -> int:
    """Connections with a request that the files of this process are enough for."""
    files = _files()
    served = files - min(_OTHER_FILES, files // 2)
    return min(_MOST_CONNECTIONS, max(1, served // _FILES_OF_A_REQUEST))


def most_files() -> int:
    """Open files from which a new connection ends an idle one."""
    return int(_files() * _CROWDED)


def open_files() -> int:
    """Files that this process has open."""
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:  # no file is free to look with
        return sys.maxsize


def _files() -> int:
    """Raise this process's limit of open files where that helps; gives the limit."""
    files, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_CONNECTIONS * _FILES_OF_A_REQUEST + _OTHER_FILES
    if files != resource.RLIM_INFINITY and files < wanted:
        more = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
            files = more
    return sys.maxsize if files == resource.RLIM_INFINITY else files
