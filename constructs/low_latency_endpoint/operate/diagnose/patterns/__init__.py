"""Patterns over time: what explains slow periods by when they come, before the decision tree."""
