from ipaddress import IPv4Address

import pytest

from tessera.embedded.runtime.addresses import NETWORK, Addresses
from tessera.errors import StartRefused


def test_every_pod_has_an_address_of_its_own_on_loopback():
    addresses = Addresses("engine")
    taken = {addresses.take(f"pod-{number}") for number in range(500)}
    assert len(taken) == 500
    assert all(IPv4Address(address) in NETWORK for address in taken)


def test_a_pod_keeps_its_address():
    addresses = Addresses("engine")
    assert addresses.take("a") == addresses.take("a")
    assert Addresses("engine").take("b", wanted=addresses.take("c")) == addresses.take("c")


def test_an_address_that_is_taken_or_not_ours_is_not_given_as_wanted():
    addresses = Addresses("engine")
    first = addresses.take("a")
    assert addresses.take("b", wanted=first) != first
    assert addresses.take("c", wanted="10.0.0.7") != "10.0.0.7"


def test_engines_have_different_blocks():
    assert len({Addresses(name).block for name in "abcdefgh"}) == 8


def test_an_address_is_not_given_again_at_once():
    addresses = Addresses("engine")
    first = addresses.take("a")
    addresses.give_back("a")
    assert addresses.take("b") != first


def test_when_all_are_taken_a_sentence_says_so():
    addresses = Addresses("engine")
    for number in range(addresses.block.num_addresses - 2):
        addresses.take(str(number))
    with pytest.raises(StartRefused, match=r"all 4094 addresses of .* are taken"):
        addresses.take("one more")
    addresses.give_back("7")
    assert addresses.take("one more")
