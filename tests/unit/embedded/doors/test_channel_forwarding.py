"""Which ports are forwarded over channels."""

import pytest

from tessera.embedded.doors.channel_forwarding import read_ports
from tessera.embedded.refusals import ApiRefusal


@pytest.mark.parametrize("query", [b"ports=80&ports=81", b"ports=80,81", b"ports=80%2C81"])
def test_ports_are_named_one_by_one_or_together(query):
    assert read_ports(query) == [80, 81]


@pytest.mark.parametrize("query", [b"", b"ports=", b"ports=http", b"ports=0", b"ports=70000", b"ports=" + b"1," * 200])
def test_what_is_no_port_is_refused(query):
    with pytest.raises(ApiRefusal, match="expected numbers of ports"):
        read_ports(query)
