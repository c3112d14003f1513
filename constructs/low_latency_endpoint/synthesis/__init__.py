"""What the constructs share: tokens, warnings, policy documents, safeguards."""
