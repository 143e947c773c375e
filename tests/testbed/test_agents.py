from testbed.agents import HANDSHAKE_EVERY_S, until_window_s


def test_all_agents_wait_for_the_same_second_of_the_clock_whenever_they_began():
    began_s = (1_000_100.0, 1_000_107.5, 1_000_200.25)
    assert {now_s + until_window_s(now_s) for now_s in began_s} == {1_000_320.0}


def test_who_has_just_reported_waits_for_the_next_window():
    window_s = 10.0 * HANDSHAKE_EVERY_S
    assert until_window_s(window_s + 0.5) == HANDSHAKE_EVERY_S - 0.5
