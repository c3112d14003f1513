"""AWS's own recommendation jobs, asked from the settings file and read back into it.

Inference Recommender tests the deployed model on instance types; optimization jobs change the model.
:mod:`.job_requests` and :mod:`.optimization_requests` say what is asked, :mod:`.jobs` starts and follows jobs of every kind,
:mod:`.results` reads their answers, :mod:`.adopting` takes one over. Requests are pure functions of
their options; nothing here prints or asks for consent.
"""
