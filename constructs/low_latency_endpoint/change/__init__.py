"""What deploying one settings file over another does, difference by difference."""
