"""In which order pods arrive, and how many of them.

The list is sorted by name and shuffled; then pods drawn from it again are added, or pods drawn at random are taken
away, until their demand is the wanted part of the cluster's cards. The seed is Python's.
"""

from collections.abc import Sequence
from random import Random

from tessera.simulation.scenario import Arrival


def arrivals_for(pods: Sequence[Arrival], *, wanted_milli: float, random: Random) -> list[Arrival]:
    queue = list(pods)
    random.shuffle(queue)
    demand = sum(pod.milli for pod in queue)
    while demand < wanted_milli:
        pod = random.choice(pods)
        queue.append(pod)
        demand += pod.milli
    while demand > wanted_milli and len(queue) > 1:
        position = random.randrange(len(queue))
        if demand - queue[position].milli < wanted_milli:
            break
        demand -= queue.pop(position).milli
    return queue
