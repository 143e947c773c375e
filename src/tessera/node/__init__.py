"""On a node: its cards told to the cluster, and given to containers exactly as the scheduler decided.

The kubelet never says for whom it asks. So it is given neutral tiles, and what a tile means is decided when its
container is about to start and can be identified: its cards, its limits, its environment. Which card a pod gets is the
scheduler's decision and read from the pod; what a vendor's container needs is `vendors`.
"""
