"""SageMaker's jobs about a model, asked from the settings file and read back into it.

:mod:`.jobs` runs every job. Of Inference Recommender :mod:`.inference_requests` says what is asked
and :mod:`.recommendations` what came back; of optimization jobs :mod:`.optimization_requests` and
:mod:`.optimized_model`. Nothing here asks for consent or writes a file.
"""
