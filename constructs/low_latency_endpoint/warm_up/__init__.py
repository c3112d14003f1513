"""Requests to a new fleet before callers' own: the construct and its functions' code.

It imports ``hosting`` and what that may import.
"""
