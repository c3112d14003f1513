"""What should the endpoint be? Its numbers from its options, each with an explanation.

It imports ``options``, ``facts`` and ``errors``; no AWS library, and nothing outside Python.
"""
