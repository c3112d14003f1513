"""What deploying another settings file over one that is deployed does, difference by difference.

:func:`~low_latency_endpoint.settings.update.comparison.compare` finds the differences; what each
touches is data (:mod:`.endpoint_fields`, :mod:`.shared_fields`), which
``tests/synth/test_effects_of_settings.py`` holds against the templates, setting by setting, with
CloudFormation's own schemas.
"""
