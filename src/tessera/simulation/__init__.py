"""Replaying pods against the real engine: what would a policy have done with this cluster and these arrivals?

Here live traces, made-up clusters, cluster dumps and the replay itself. What decides is the engine's; nothing in here
places a pod. What people see of the outcome belongs in `cli`.
"""
