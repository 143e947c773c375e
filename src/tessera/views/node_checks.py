"""What the doctor says of nodes: without cards, an agent or its library, and of cards that are ill or unreadable."""

from collections.abc import Iterator

from tessera.views.findings import Finding, named, ok, problem, warning
from tessera.views.nodes import AgentStanding, NodeView
from tessera.views.observing import Observed

GPU_LABEL = "gpu=on"


def check_nodes(seen: Observed) -> Iterator[Finding]:
    if seen.nodes is None:
        return
    labelled = [node for node in seen.nodes if node.labelled]
    with_cards = [node for node in seen.nodes if node.cards]
    if not with_cards and not labelled:
        said = f"none of {len(seen.nodes)} nodes is labelled {GPU_LABEL} or reports a card"
        yield warning("nodes", said, "see that the agent runs where cards are, and finds them")
        return
    judged = [
        *_check_registers(labelled),
        *_check_labels(with_cards),
        *_check_handshakes(with_cards),
        *_check_standing(with_cards),
        *_check_cards(with_cards),
        *_check_limits(with_cards),
        *_check_complaints(list(seen.nodes)),
    ]
    if not judged:
        cards = sum(len(node.cards) for node in with_cards)
        yield ok("nodes", f"{len(with_cards)} nodes report {cards} cards, all well")
    yield from judged


def _check_registers(labelled: list[NodeView]) -> Iterator[Finding]:
    bare = [node.name for node in labelled if not node.cards]
    if bare:
        said = f"{len(bare)} of {len(labelled)} nodes with label {GPU_LABEL} report no cards: {named(bare)}"
        yield problem("nodes", said, "see that the agent runs there, and finds them")


def _check_labels(with_cards: list[NodeView]) -> Iterator[Finding]:
    plain = [node.name for node in with_cards if not node.labelled]
    if plain:
        said = f"{len(plain)} nodes have cards but no label {GPU_LABEL}, so clients overlook them: {named(plain)}"
        yield warning("nodes", said, f"kubectl label node {plain[0]} {GPU_LABEL}")


def _check_handshakes(with_cards: list[NodeView]) -> Iterator[Finding]:
    silent = [node.name for node in with_cards if not node.handshakes]
    stale = [node.name for node in with_cards if any(not said.is_fresh for said in node.handshakes)]
    if stale:
        said = f"{len(stale)} nodes have a handshake older than five minutes: {named(stale)}"
        yield problem("nodes", said, "see that the agent runs there, and that its clock is right")
    if silent:
        said = f"{len(silent)} nodes have cards but no handshake: {named(silent)}"
        yield warning("nodes", said, "see that the agent runs there")


def _check_standing(with_cards: list[NodeView]) -> Iterator[Finding]:
    silent = [node.name for node in with_cards if node.agent.standing is AgentStanding.SILENT]
    if silent:
        said = f"{len(silent)} agents no longer renew their lease: {named(silent)}"
        yield problem("nodes", said, "see that the agent runs there")
    unready = [node.name for node in with_cards if not node.ready]
    if unready:
        yield problem(
            "nodes", f"{len(unready)} nodes with cards are not ready: {named(unready)}", "kubectl describe node"
        )


def _check_cards(with_cards: list[NodeView]) -> Iterator[Finding]:
    ill = [f"{node.name} #{card.index}" for node in with_cards for card in node.cards if not card.healthy]
    if ill:
        yield warning("cards", f"{len(ill)} cards are unhealthy: {named(ill)}", "tessera nodes -o wide")
    aside = [f"{node.name} #{card.index}" for node in with_cards for card in node.cards if card.cordoned]
    if aside:
        said = f"{len(aside)} cards are cordoned: {named(aside)}"
        yield warning(
            "cards", said, "remove them from the annotation hami.io/device-cordon when they may be used again"
        )


def _check_limits(with_cards: list[NodeView]) -> Iterator[Finding]:
    loose = [node for node in with_cards if node.limits_trouble]
    if loose:
        said = f"{len(loose)} nodes do not keep containers within their limits: {named([node.name for node in loose])}"
        yield problem("limits", f"{said}; {loose[0].limits_trouble}", "see docs/node.md")


def _check_complaints(nodes: list[NodeView]) -> Iterator[Finding]:
    for sentence in [sentence for node in nodes for sentence in node.complaints][:3]:
        yield warning("cards", sentence)
