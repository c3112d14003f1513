"""The run in a real account that proves the library's claims; it is no part of the wheel.

``make accept`` deploys two small endpoints with the library's public constructs, sends traffic,
updates, renames and removes them, destroys all of it, and writes down what it saw. The files:

app.py       the CDK app: the endpoints, probes in each zone, queues for pages and events; the role
             that is stated, and another stack that states it
hub_model.py the model of the Hugging Face Hub: two commits that the run pins
model/       what the endpoint serves, and how the local AWS serves it
probe/       the function in each zone: names, certificates, calls
world.py     the account under test: clients, the CDK CLI, waiting, traffic
steps.py     what is done, step by step; each can be done again
looking.py   what each step writes down
run.py       runs steps, remembers them, continues after a kill
sweep.py     deletes by tag whatever a run has left
estimate.py  hours and dollars, before anything starts
evidence.py  takes out of the evidence what belongs to the account
claims.py    what evidence says of each claim in docs/reference/seen-on-aws.md
page.py      fills in that page's table from the evidence
"""
