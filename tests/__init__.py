"""What the tests share. A package, or another distribution's `tests` would be found instead."""
