"""Why is the endpoint slow, or failing? What `low-latency diagnose` does."""

from __future__ import annotations

from .diagnosis import Diagnosis
from .findings import Finding
from .measurements import Measurements
from .reading import diagnose

__all__ = ["Diagnosis", "Finding", "Measurements", "diagnose"]
