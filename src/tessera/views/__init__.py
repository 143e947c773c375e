"""What people look at, as data: nodes and their cards, pods and what they wait for, what is wrong with a cluster.

A view is made by a pure function from documents of the Kubernetes API, and encodes with msgspec. What reads the
documents is thin and tells what it was not allowed to read. Nothing here knows a component or how a view is drawn: the
command line and the dashboard show the same data.
"""
