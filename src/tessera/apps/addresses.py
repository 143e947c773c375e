"""Addresses as they stand on a command line."""

from typing import NamedTuple

from tessera.errors import InvalidRequest


class Address(NamedTuple):
    host: str
    port: int


def read_address(flag: str, text: str) -> Address | None:
    """None for an empty text: nothing is served there."""
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise InvalidRequest(f'{flag} is "{text}", expected an address and a port such as 127.0.0.1:8080')
    return Address(host.strip("[]"), int(port))


def read_health_address(flag: str, text: str) -> Address:
    """There is always one: whoever runs us must be able to ask."""
    address = read_address(flag, text)
    if address is None:
        raise InvalidRequest(f"{flag} is empty, expected an address such as 127.0.0.1:9394, where health is asked")
    return address
