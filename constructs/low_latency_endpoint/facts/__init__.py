"""What AWS says, as data: limits, rules between values, and tables with a source in each.

It imports ``errors`` and ``report.numbers``; no AWS library, and nothing outside Python.
"""
