"""Tables as people see them, letter by letter."""

from msgspec.structs import replace

from tessera.cli.doctor import draw_findings
from tessera.cli.nodes import NODE_LOOK
from tessera.cli.pods import pod_look
from tessera.views.findings import ok, problem, warning
from tessera.views.nodes import view_nodes
from tests.unit.cli.showing import NODES, PODS, drawn, golden
from tests.unit.views.making import CATALOGUE, NOW, a_node


def test_nodes():
    assert drawn(NODE_LOOK.table(NODES, NOW)) == golden("nodes")


def test_nodes_wide_are_cards():
    assert drawn(NODE_LOOK.wide(NODES, NOW)) == golden("nodes.wide")


def test_pods_of_a_namespace():
    assert drawn(pod_look(namespaces=False).table(PODS, NOW)) == golden("pods")


def test_pods_of_all_namespaces():
    assert drawn(pod_look(namespaces=True).table(PODS, NOW)) == golden("pods.all")


def test_pods_wide_have_the_uuids_of_their_cards():
    assert drawn(pod_look(namespaces=False).wide(PODS, NOW)) == golden("pods.wide")


def test_pods_on_a_terminal_of_80_columns():
    assert drawn(pod_look(namespaces=False).table(PODS, NOW), width=80) == golden("pods.narrow")


def test_findings():
    findings = (
        ok("version", "Kubernetes is v1.36.3"),
        warning("clock", "this machine's clock is 90 s ahead", "synchronize it"),
        problem("installation", "nothing of Tessera is installed in this cluster", "install it"),
    )

    assert drawn(draw_findings(findings)) == golden("doctor")


def test_what_is_used_is_a_question_mark_where_pods_may_not_be_read():
    table = NODE_LOOK.table(view_nodes([a_node()], None, None, CATALOGUE, NOW), NOW)

    assert drawn(table).splitlines()[1].split()[3:] == ["?/160Gi", "?/200%", "?/20", "60s", "unknown"]


def test_what_was_deleted_says_so():
    (node, *_), (pod, *_) = NODES, PODS

    assert "Deleted" in drawn(NODE_LOOK.table([replace(node, deleted=True)], NOW))
    assert "Deleted" in drawn(pod_look(namespaces=False).table([replace(pod, deleted=True)], NOW))


def test_a_pod_that_is_pinned_does_not_look_as_if_it_named_a_claim():
    pod, *_ = PODS
    pods = [replace(pod, claim=claim, asks=()) for claim in ("pair", "node-a:0,1")]

    asks = [row.split()[4] for row in drawn(pod_look(namespaces=False).table(pods, NOW)).splitlines()]

    assert asks == ["ASKS", "claim:pair", "pin:node-a:0,1"]
