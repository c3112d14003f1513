"""Load generators in the VPC: tasks, roles, image, results.

It imports ``hosting`` and what that may import.
"""
