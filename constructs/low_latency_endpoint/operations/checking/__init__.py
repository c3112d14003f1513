"""What ``low-latency preflight`` and ``low-latency verify`` share.

One check is one small function that reads the account and yields outcomes. :mod:`.results` says
what an outcome is, :mod:`.checks` runs them, :mod:`.account` reads AWS (only reads, each once),
:mod:`.stack` reads a deployed stack piece by piece, :mod:`.tables` prints.
"""
