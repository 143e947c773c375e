"""What a GpuGang says of itself, judged from the pods that are in it. Pure.

A pod is in the gang that its annotation names, else in the one that its claim names. It counts as the scheduler counts
it: one that has done its work is still a member, one that failed or is being deleted is none.
"""

from collections.abc import Iterable

from tessera.kube.pods import Pod
from tessera.operators.objects import Gang, GangStatus, Phase
from tessera.operators.pods import has_failed, is_on_a_node, name_of, oldest_first, why_it_waits


def judge_gang(gang: Gang, pods: Iterable[Pod]) -> GangStatus:
    """`pods` are those of the gang, whatever became of them."""
    members = [pod for pod in oldest_first(pods) if not has_failed(pod) and not pod.metadata.deletion_timestamp]
    waiting = [pod for pod in members if not is_on_a_node(pod)]
    bound, wanted = len(members) - len(waiting), gang.spec.min_member
    return GangStatus(
        members=len(members),
        bound=bound,
        phase=Phase.BOUND if bound >= wanted else Phase.PENDING,
        message=_explain(wanted, len(members), bound, waiting),
    )


def _explain(wanted: int, members: int, bound: int, waiting: list[Pod]) -> str:
    if members < wanted:
        return f"{members} of {wanted} members are there, the others are waited for"
    placed = f"{bound} of {wanted} members are on nodes"
    return placed if bound >= wanted else f"{placed}; {name_of(waiting[0])} waits: {why_it_waits(waiting[0])}"
