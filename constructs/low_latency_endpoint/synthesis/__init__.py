"""What the constructs share: tokens, warnings, policy documents, safeguards.

It imports ``plan`` and ``errors``.
"""
