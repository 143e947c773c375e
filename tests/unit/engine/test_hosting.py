"""Which nodes a pod may be on at all, cards apart."""

import numpy as np
import pytest

from tessera.engine.fleet import Fleet
from tessera.engine.hosting import Admission, matches_rule, refuse_host
from tessera.model.devices import Host, Taint
from tessera.model.refusals import Reason, Refusal, render
from tessera.model.requests import HostRequest, LabelRule, Toleration
from tests.builders import a_node, a_pod
from tests.unit.engine.world import World

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def refused(host: Host, *, tolerations: tuple[Toleration, ...] = (), terms: tuple = ()) -> Reason | None:
    refusal = refuse_host(HostRequest(tolerations=tolerations, node_terms=terms), host, "gpu-07")
    return refusal.reason if refusal else None


def a_host(*taints: Taint, **changes: object) -> Host:
    figures: dict = {"cpu_milli": 1, "memory_bytes": 1, "taints": taints}
    return Host(**{**figures, **changes})


def test_a_plain_node_admits_a_plain_pod():
    assert refused(a_host()) is None


def test_a_node_that_is_not_ready_admits_nobody():
    everything = (Toleration(operator="Exists"),)
    assert refused(a_host(ready=False), tolerations=everything) is Reason.NODE_NOT_READY


class TestTaints:
    DEDICATED = Taint("dedicated", "ml", "NoSchedule")

    @pytest.mark.parametrize(
        "toleration",
        [
            Toleration(key="dedicated", value="ml", effect="NoSchedule"),
            Toleration(key="dedicated", value="ml"),
            Toleration(key="dedicated", operator="Exists"),
            Toleration(key="dedicated", operator="Exists", effect="NoSchedule"),
            Toleration(operator="Exists"),
        ],
    )
    def test_a_matching_toleration_admits(self, toleration):
        assert refused(a_host(self.DEDICATED), tolerations=(toleration,)) is None

    @pytest.mark.parametrize(
        "toleration",
        [
            Toleration(key="dedicated", value="web"),
            Toleration(key="dedicated"),
            Toleration(key="other", value="ml"),
            Toleration(key="other", operator="Exists"),
            Toleration(key="dedicated", operator="Exists", effect="NoExecute"),
            Toleration(operator="Exists", effect="NoExecute"),
        ],
    )
    def test_a_toleration_of_something_else_does_not(self, toleration):
        assert refused(a_host(self.DEDICATED), tolerations=(toleration,)) is Reason.NODE_TAINT

    def test_a_taint_that_only_prefers_keeps_nobody_away(self):
        assert refused(a_host(Taint("dedicated", "ml", "PreferNoSchedule"))) is None

    def test_no_execute_keeps_away_too(self):
        assert refused(a_host(Taint("dedicated", "ml", "NoExecute"))) is Reason.NODE_TAINT

    def test_the_first_taint_that_is_not_tolerated_is_named(self):
        host = a_host(self.DEDICATED, Taint("spot", effect="NoExecute"), Taint("late", "x"))
        refusal = refuse_host(
            HostRequest(tolerations=(Toleration(key="dedicated", operator="Exists"),)), host, "gpu-07"
        )
        assert refusal == Refusal(Reason.NODE_TAINT, where="gpu-07", detail="spot:NoExecute")
        refusal = refuse_host(HostRequest(), host, "gpu-07")
        assert refusal is not None
        assert render(refusal) == "gpu-07: the pod does not tolerate the taint dedicated=ml:NoSchedule"


class TestCordons:
    def test_a_cordoned_node_admits_nobody(self):
        assert refused(a_host(unschedulable=True)) is Reason.NODE_CORDONED

    def test_cordoned_is_said_rather_than_the_taint_that_comes_with_it(self):
        assert refused(a_host(Taint(UNSCHEDULABLE), unschedulable=True)) is Reason.NODE_CORDONED

    def test_who_tolerates_the_unschedulable_taint_may_stay_on_a_cordoned_node(self):
        daemon = (Toleration(key=UNSCHEDULABLE, operator="Exists", effect="NoSchedule"),)
        assert refused(a_host(Taint(UNSCHEDULABLE), unschedulable=True), tolerations=daemon) is None


class TestSelectors:
    LABELS = (("zone", "a"), ("cards", "8"))

    @pytest.mark.parametrize(
        ("rule", "holds"),
        [
            (LabelRule("zone", "In", ("a", "b")), True),
            (LabelRule("zone", "In", ("b",)), False),
            (LabelRule("rack", "In", ("a",)), False),
            (LabelRule("zone", "NotIn", ("b",)), True),
            (LabelRule("zone", "NotIn", ("a",)), False),
            (LabelRule("rack", "NotIn", ("a",)), True),
            (LabelRule("zone", "Exists"), True),
            (LabelRule("rack", "Exists"), False),
            (LabelRule("zone", "DoesNotExist"), False),
            (LabelRule("rack", "DoesNotExist"), True),
            (LabelRule("cards", "Gt", ("7",)), True),
            (LabelRule("cards", "Gt", ("8",)), False),
            (LabelRule("cards", "Lt", ("9",)), True),
            (LabelRule("cards", "Lt", ("8",)), False),
            (LabelRule("zone", "Gt", ("1",)), False),
            (LabelRule("rack", "Lt", ("1",)), False),
            (LabelRule("cards", "Gt", ()), False),
            (LabelRule("cards", "Gt", ("many",)), False),
            (LabelRule("zone", "Resembles", ("a",)), False),
        ],
    )
    def test_a_rule_holds_as_kubernetes_reads_it(self, rule, holds):
        assert matches_rule(rule, dict(self.LABELS)) is holds

    def test_rules_of_a_term_all_hold_and_terms_are_alternatives(self):
        host = a_host(labels=self.LABELS)
        right, wrong = LabelRule("zone", "In", ("a",)), LabelRule("zone", "In", ("b",))
        assert refused(host, terms=((right,),)) is None
        assert refused(host, terms=((right, wrong),)) is Reason.NODE_SELECTOR
        assert refused(host, terms=((wrong,), (right,))) is None
        assert refused(host, terms=((wrong,), (wrong,))) is Reason.NODE_SELECTOR

    def test_an_empty_term_matches_no_node(self):
        assert refused(a_host(labels=self.LABELS), terms=((),)) is Reason.NODE_SELECTOR

    def test_a_term_may_name_the_node(self):
        assert refused(a_host(), terms=((LabelRule("metadata.name", "In", ("gpu-07",)),),)) is None
        assert refused(a_host(), terms=((LabelRule("metadata.name", "In", ("gpu-08",)),),)) is Reason.NODE_SELECTOR


class TestAdmission:
    """The verdicts are kept, and looked at again when the node says something else."""

    def test_rules_decide_and_amounts_do_not(self):
        fleet = Fleet()
        fleet.put(a_node("a"))
        fleet.put(a_node("b", ready=False))
        admission, rows = Admission(fleet), np.array([0, 1])
        assert admission.admitted(HostRequest(cpu_milli=10**9), rows).tolist() == [True, False]
        assert admission.admitted(HostRequest(), rows).tolist() == [True, False]

    def test_a_node_that_becomes_ready_is_admitted(self):
        world = World(a_node("a", ready=False))
        assert world.fitting(a_pod()) == []
        world.ledger.put_node(a_node("a"))
        assert world.fitting(a_pod()) == ["a"]
        world.ledger.put_node(a_node("a", unschedulable=True))
        assert world.fitting(a_pod()) == []

    def test_a_removed_node_is_not_admitted_and_its_place_serves_another(self):
        world = World(a_node("a"), a_node("b", ready=False))
        assert world.fitting(a_pod()) == ["a"]
        world.ledger.drop_node("a")
        assert world.fitting(a_pod()) == []
        world.ledger.put_node(a_node("c", taints=(Taint("spot"),)))
        assert world.fitting(a_pod()) == []
        assert world.fitting(a_pod(tolerations=(Toleration(operator="Exists"),))) == ["c"]

    def test_more_rules_than_are_kept_give_the_same_verdicts(self):
        fleet = Fleet()
        fleet.put(a_node("a", labels=(("n", "3"),)))
        admission = Admission(fleet, limit=2)
        for _ in range(2):
            for number in range(5):
                wanted = HostRequest(node_terms=((LabelRule("n", "In", (str(number),)),),))
                assert admission.admitted(wanted, np.array([0])).tolist() == [number == 3]

    def test_a_fleet_that_grew_is_looked_at_anew(self):
        fleet = Fleet()
        fleet.put(a_node("a"))
        admission = Admission(fleet)
        assert admission.admitted(HostRequest(), np.array([0])).tolist() == [True]
        for number in range(40):
            fleet.put(a_node(f"n{number}", ready=number % 2 == 0))
        verdicts = admission.admitted(HostRequest(), np.arange(41)).tolist()
        assert verdicts == [True, *(number % 2 == 0 for number in range(40))]
