"""What should the endpoint be? Facts as data and pure functions over them.

It imports ``errors``; no AWS library, and nothing outside Python.
"""
