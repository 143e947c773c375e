"""What a node says in conditions: only what is not as it should be, and when that is over."""

from tessera.node.conditions import SaidCondition, judge_late_binding, judge_limits, unsaid

BAD = judge_limits("the library is not on the node")


def said(status: str, message: str = "", kind: str = BAD.type) -> SaidCondition:
    return SaidCondition(type=kind, status=status, message=message)


def test_a_node_on_which_all_is_well_says_nothing():
    assert unsaid([judge_late_binding(True), judge_limits("")], ()) == []


def test_trouble_is_said_once_and_taken_back():
    assert unsaid([BAD], ()) == [BAD]
    assert unsaid([BAD], [said("False", BAD.message)]) == []
    good = judge_limits("")
    assert unsaid([good], [said("False", BAD.message)]) == [good]
    assert unsaid([good], [said("True")]) == []


def test_other_trouble_is_news():
    assert unsaid([BAD], [said("False", "something else")]) == [BAD]


def test_each_condition_is_judged_by_itself():
    early = judge_late_binding(False)
    assert unsaid([early, BAD], [said("False", BAD.message)]) == [early]
