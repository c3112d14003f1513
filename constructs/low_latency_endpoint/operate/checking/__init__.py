"""What ``low-latency preflight`` and ``low-latency verify`` share.

One check is one small function that reads the account and yields outcomes. :mod:`.checks` says
what an outcome is and runs them, :mod:`.policies` judges what a resource policy lets through,
:mod:`.tables` prints.
"""
