"""Why a pod finds no node, as kube-scheduler puts it: people and programs know these words.

What it has words for is said in them; what is about cards is said in ours. Nodes that say the same are counted.
"""

from collections import Counter
from collections.abc import Iterable

from tessera.model.refusals import Reason
from tessera.scheduler.other_resources import HOST_PORT
from tessera.scheduler.reasons import reason_of

WORDS = {
    Reason.NODE_NOT_READY: "node(s) had untolerated taint {node.kubernetes.io/not-ready: }",
    Reason.NODE_CORDONED: "node(s) were unschedulable",
    Reason.NODE_SELECTOR: "node(s) didn't match Pod's node affinity/selector",
    Reason.NODE_TAINT: "node(s) had untolerated taint {%s}",
    Reason.HOST_CPU: "Insufficient cpu",
    Reason.HOST_MEMORY: "Insufficient memory",
    Reason.HOST_PODS: "Too many pods",
}


def explain_unplaced(sentences: Iterable[str], *, chooses_nodes: bool = True) -> str:
    """`sentences` are one for each node. The same while the state is.

    A pod that does not choose nodes itself has a claim or a pin that does, and kube-scheduler knows nothing of these.
    """
    counts = Counter(_in_words(sentence, chooses_nodes) for sentence in sentences)
    told = ", ".join(f"{count} {words}" for words, count in sorted(counts.items()))
    return f"0/{counts.total()} nodes are available: {told}." if counts else "no nodes available to schedule pods"


def insufficient(resource: str) -> str:
    if resource.startswith(HOST_PORT):
        return "node(s) didn't have free ports for the requested pod ports"
    return f"Insufficient {resource}"


def _in_words(sentence: str, chooses_nodes: bool) -> str:
    """What follows the number of nodes."""
    reason = reason_of(sentence)
    if reason is None:
        return sentence
    if reason not in WORDS or (reason is Reason.NODE_SELECTOR and not chooses_nodes):
        return f"node(s): {sentence}"
    words = WORDS[reason]
    return words % _taint(sentence) if reason is Reason.NODE_TAINT else words


def _taint(sentence: str) -> str:
    """`key=value:effect` as kube-scheduler shows it."""
    named = sentence.rpartition(" ")[2].rpartition(":")[0]
    key, _, value = named.partition("=")
    return f"{key}: {value}"
