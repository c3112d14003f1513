"""Why is the endpoint slow, or failing? What `low-latency diagnose` does.

:func:`diagnose` reads CloudWatch and the services (``reading``), and walks the decision tree of
AWS's knowledge center over what it read (``tree`` and the modules of rules, which are pure). Needs
the ``operations`` extra; the HTML page (``page``) the ``report`` extra.
"""

from __future__ import annotations

from .diagnosis import Diagnosis
from .findings import Finding
from .measurements import Measurements
from .reading import diagnose

__all__ = ["Diagnosis", "Finding", "Measurements", "diagnose"]
