"""What a pull request does to what is deployed: both revisions read, judged, and posted.

Only settings and the files that they name are read; no code of the pull request is run. It knows
no CDK, and asks GitHub with the standard library alone.
"""
