"""The run in a real account that proves the library's claims; it is no part of the wheel.

``make accept`` deploys a small endpoint with the library's public constructs, sends traffic,
updates it well and badly, destroys it, and writes down what it saw. The files:

app.py       the CDK app: the endpoint, probes in each zone, queues for pages and events
model/       what the endpoint serves, and how the local AWS serves it
probe/       the function in each zone: names, certificates, calls
world.py     the account under test: clients, the CDK CLI, waiting, traffic
steps.py     what is done, step by step; each can be done again
looking.py   what each step writes down
run.py       runs steps, remembers them, continues after a kill
sweep.py     deletes by tag whatever a run has left
estimate.py  hours and dollars, before anything starts
evidence.py  takes out of the evidence what belongs to the account
claims.py    the library's claims, and what evidence says of each
replay.py    what the local AWS must show as AWS did
page.py      docs/reference/seen-on-aws.md from the evidence
"""
