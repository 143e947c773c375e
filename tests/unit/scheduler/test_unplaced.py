"""Why a pod waits, in the words that people know from kube-scheduler, and in ours where it has none."""

from tessera.model.refusals import Reason, Refusal, render
from tessera.scheduler.unplaced import WORDS, explain_unplaced, insufficient


def test_nodes_that_say_the_same_are_counted():
    selector, cpu = render(Refusal(Reason.NODE_SELECTOR)), render(Refusal(Reason.HOST_CPU, need=2000, have=500))
    assert explain_unplaced([selector, cpu, selector]) == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector."
    )


def test_a_selector_that_is_not_the_pods_own_is_not_called_so():
    selector = render(Refusal(Reason.NODE_SELECTOR))
    assert explain_unplaced([selector], chooses_nodes=False) == (
        "0/1 nodes are available: 1 node(s): the node's labels do not match the node selector of the pod or its claim."
    )


def test_what_is_about_cards_is_said_in_our_words():
    memory = render(Refusal(Reason.CARD_MEMORY, need=24_000, have=16_384))
    assert explain_unplaced([memory]) == (
        "0/1 nodes are available: 1 node(s): no card has 24000 MiB free, the roomiest has 16384 MiB."
    )


def test_a_taint_is_named():
    for detail, shown in (("gpu=yes:NoSchedule", "{gpu: yes}"), ("a.b/c:NoExecute", "{a.b/c: }")):
        taint = render(Refusal(Reason.NODE_TAINT, detail=detail))
        assert explain_unplaced([taint]) == f"0/1 nodes are available: 1 node(s) had untolerated taint {shown}."


def test_every_reason_that_is_the_hosts_has_kube_schedulers_words():
    hosts = [reason for reason in Reason if reason.startswith(("Node", "Host")) and reason is not Reason.NODE_UNKNOWN]
    assert set(hosts) == WORDS.keys()


def test_a_resource_that_is_nobodys_cards_is_named():
    assert "1 Insufficient example.com/foo" in explain_unplaced([insufficient("example.com/foo")])


def test_without_nodes_there_is_a_sentence_too():
    assert explain_unplaced([]) == "no nodes available to schedule pods"
