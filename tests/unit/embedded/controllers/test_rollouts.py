from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.controllers.rollouts import bounds_of, next_scales
from tests.unit.embedded.controllers.making import deployment, replica_set


def rolling(surge, unavailable):
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def with_available(name, replicas, available):
    return replica_set(name, replicas, status={"availableReplicas": available})


def test_percentages_are_rounded_up_above_and_down_below():
    assert bounds_of(deployment(10, strategy=rolling("25%", "25%"))) == (3, 2)
    assert bounds_of(deployment(1, strategy=rolling("0%", "0%"))) == (0, 1)


def test_recreate_has_no_bounds_but_an_order():
    recreating = deployment(2, strategy={"type": "Recreate"})
    new, old = replica_set("new", 0), replica_set("old", 2)
    assert next_scales(recreating, new, [old], 2) == [(old, 0)]
    assert next_scales(recreating, new, [replica_set("old", 0)], 1) == []
    assert next_scales(recreating, new, [replica_set("old", 0)], 0) == [(new, 2)]


def test_pods_that_are_not_available_go_first():
    old = with_available("old", 3, 1)
    scales = next_scales(deployment(3, strategy=rolling(1, 1)), with_available("new", 1, 1), [old], 3)
    assert scales == [(old, 1)]


def test_old_pods_are_not_removed_while_new_ones_are_not_available():
    new, old = with_available("new", 1, 0), with_available("old", 3, 2)
    assert next_scales(deployment(3, strategy=rolling(1, 0)), new, [old], 3) == []


@st.composite
def half_way(draw):
    """Somewhere in a rollout: wanted, bounds, and two ReplicaSets of which some pods are available."""
    wanted = draw(st.integers(0, 12))
    surge, unavailable = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    new, old = draw(st.integers(0, wanted)), draw(st.integers(0, wanted))
    deployed = deployment(wanted, strategy=rolling(surge, unavailable))
    return (
        deployed,
        with_available("new", new, draw(st.integers(0, new))),
        with_available("old", old, draw(st.integers(0, old))),
    )


def available_at_least(one, replicas):
    """How many stay available when it is scaled: a ReplicaSet removes those first that are not."""
    available = one.status["availableReplicas"]
    broken = one.spec.replicas - available
    return available - max(0, one.spec.replicas - replicas - broken)


@given(half_way())
def test_no_step_goes_beyond_the_bounds(state):
    deployed, new, old = state
    surge, unavailable = bounds_of(deployed)
    wanted = deployed.spec.replicas
    scaled = {one.metadata.name: replicas for one, replicas in next_scales(deployed, new, [old], 0)}
    after: dict[str, int] = {one.metadata.name: one.spec.replicas for one in (new, old)} | scaled
    assert sum(after.values()) <= max(wanted + surge, new.spec.replicas + old.spec.replicas)
    before = sum(one.status["availableReplicas"] for one in (new, old))
    left = sum(available_at_least(one, after[one.metadata.name]) for one in (new, old))
    assert left >= min(before, wanted - unavailable)


@given(half_way())
def test_where_every_pod_becomes_available_a_rollout_ends(state):
    deployed, new, old = state
    for _ in range(60):
        new = with_available("new", new.spec.replicas, new.spec.replicas)
        old = with_available("old", old.spec.replicas, old.spec.replicas)
        scales = {one.metadata.name: replicas for one, replicas in next_scales(deployed, new, [old], 0)}
        if not scales:
            break
        new = with_available("new", scales.get("new", new.spec.replicas), 0)
        old = with_available("old", scales.get("old", old.spec.replicas), 0)
    assert (new.spec.replicas, old.spec.replicas) == (deployed.spec.replicas, 0)
