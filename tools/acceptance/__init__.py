"""Tests that try the library's claims about AWS in a real account; no part of the wheel.

``make accept`` deploys two small endpoints with the library's public constructs, sends traffic,
updates, renames and removes them, and deletes all of it. The files, in reading order:

claims.yaml       each claim: what should be so, the step that shows it, the page that says it
test_claims.py    one test for each claim
conftest.py       options, and the fixtures, which delete what they created
confirmation.py   what must be confirmed before a run starts
steps.py          what a run does, step by step
observations.py   what a step reads from the account
judgements.py     what a step's observations say of each claim
claims.py         reads claims.yaml
clean_up.py       deletes by tag
estimate.py       hours and dollars, before anything starts
world.py          the account: clients, the CDK CLI, waiting, traffic
app.py            the CDK app: the endpoints, probes in each zone, a queue for pages
hub_model.py      the model of the Hugging Face Hub, of which the run pins two commits
model/, probe/    what the endpoint serves; the function in each zone
"""
