"""How a client comes by the server's socket: the unary call `/kpu.torch.Sharing/Greet` over the authenticated channel.

Who may call it gets the address of the Unix socket and a nonce. The nonce is good for one connection and for a short
while. That the connection comes about proves that both sides are on one host; that the nonce is known proves that it
is the one who called. From then on the nonce names the connection in the metadata of calls, under `kpu-shared`.

The request is empty. The reply is a protobuf message: 1 address (a path, or a name after "@"), 2 nonce, both strings.
"""

import secrets
from dataclasses import dataclass, field

from kpu.sharing.messages import NONCE_BYTES

GREET = "/kpu.torch.Sharing/Greet"
SESSION_KEY = "kpu-shared"
NONCE_SECONDS = 30.0
NONCES_LIMIT = 1024
_FIELD_ADDRESS, _FIELD_NONCE = 0x0A, 0x12


@dataclass(frozen=True)
class Invitation:
    address: str
    nonce: str


def encode_invitation(invitation: Invitation) -> bytes:
    address, nonce = invitation.address.encode(), invitation.nonce.encode()
    return bytes([_FIELD_ADDRESS, len(address)]) + address + bytes([_FIELD_NONCE, len(nonce)]) + nonce


def decode_invitation(reply: bytes) -> Invitation | None:
    """None for a reply that is no invitation: the call then goes on without shared memory."""
    try:
        address_end = 2 + reply[1]
        address, nonce = reply[2:address_end], reply[address_end + 2 :]
        if reply[0] != _FIELD_ADDRESS or reply[address_end] != _FIELD_NONCE or reply[address_end + 1] != len(nonce):
            return None
        if len(bytes.fromhex(nonce.decode())) != NONCE_BYTES:
            return None
        return Invitation(address.decode(), nonce.decode())
    except (IndexError, ValueError):
        return None


@dataclass
class Nonces:
    """Nonces that were given out and not yet presented. Bounded: whoever asks too often makes older ones void."""

    _given: dict[str, float] = field(default_factory=dict[str, float])

    def give(self, now: float) -> str:
        nonce = secrets.token_hex(NONCE_BYTES)
        self._given[nonce] = now + NONCE_SECONDS
        while len(self._given) > NONCES_LIMIT:
            self._given.pop(next(iter(self._given), ""), None)
        return nonce

    def redeem(self, nonce: str, now: float) -> bool:
        """Is this one of ours, still good, and presented for the first time?"""
        return self._given.pop(nonce, 0.0) > now
