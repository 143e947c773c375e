"""Where agent and host meet, and how each proves to the other that it belongs to the job.

The name of an abstract socket can be taken by anybody on the machine. So the host proves that it knows the token before
it is told anything, and the agent proves it before anything is run. The token itself is never sent.

    agent  a challenge
    host   a challenge, and its proof
    agent  its proof and the order, with descriptors for standard input, output and error
    agent  signals, one number each          host   the exit code, and the end
"""

import hashlib
import hmac
import json
import os
import secrets
import socket
from contextlib import suppress
from typing import Any, NamedTuple

CHALLENGE_BYTES = PROOF_BYTES = 32
MOST_BYTES = 1 << 20
STANDARD = 3


class Order(NamedTuple):
    """What to run. `environment` is what says where the launcher found its MPI."""

    command: str
    environment: dict[str, str]


def meeting_point(job: str, host: str) -> str:
    """An abstract address, the same for all who mean the same worker of the same job."""
    return f"\0tessera-mpi/{hashlib.sha256(f'{job}/{host}'.encode()).hexdigest()[:32]}"


def program_of(command: str) -> str:
    """What people know it by: mpirun says where things are before it names its daemon."""
    statements = (statement.split() for statement in command.split(";"))
    called = (words for words in statements if words and words[0] != "export" and "=" not in words[0])
    return next((words[0].strip("\"'").rpartition("/")[2] for words in called), "a command")


def new_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST_BYTES)
    return made


class AgentSide:
    """PermissionError, if who listens there does not know the token."""

    def __init__(self, line: socket.socket, token: str) -> None:
        self._line = line
        self._token = _real(token)

    def order(self, order: Order, descriptors: list[int]) -> None:
        own = secrets.token_bytes(CHALLENGE_BYTES)
        self._line.send(own)
        answer = self._line.recv(CHALLENGE_BYTES + PROOF_BYTES)
        theirs, proof = answer[:CHALLENGE_BYTES], answer[CHALLENGE_BYTES:]
        if not hmac.compare_digest(proof, _prove(self._token, "host", own, theirs)):
            raise PermissionError("it does not know the token of this job")
        told = _prove(self._token, "agent", own, theirs) + json.dumps(order).encode()
        socket.send_fds(self._line, [told], descriptors)

    def signal(self, number: int) -> None:
        self._line.send(str(number).encode())

    def exit_code(self) -> int | None:
        """None, if the host went away before it could tell."""
        with suppress(ConnectionError):
            told = self._line.recv(64)
            return int(told) if told else None
        return None


class HostSide:
    """One visit: `take` for each message that has come, until it returns an order."""

    def __init__(self, line: socket.socket, token: str) -> None:
        self.line = line
        self._token = _real(token)
        self._challenges: tuple[bytes, bytes] | None = None

    def take(self) -> tuple[Order, list[int]] | None:
        """PermissionError for a stranger, ConnectionError for one who leaves."""
        if self._challenges is None:
            theirs, own = self.line.recv(CHALLENGE_BYTES + 1), secrets.token_bytes(CHALLENGE_BYTES)
            if len(theirs) != CHALLENGE_BYTES:
                raise ConnectionError
            self._challenges = theirs, own
            self.line.send(own + _prove(self._token, "host", theirs, own))
            return None
        told, descriptors, _, _ = socket.recv_fds(self.line, MOST_BYTES, STANDARD)
        if not told:
            raise ConnectionError
        proof, order = told[:PROOF_BYTES], told[PROOF_BYTES:]
        if not hmac.compare_digest(proof, _prove(self._token, "agent", *self._challenges)):
            for descriptor in descriptors:
                os.close(descriptor)
            raise PermissionError
        read: list[Any] = json.loads(order)
        return Order(*read), descriptors

    def signal(self) -> int | None:
        """What was asked for; None, if the agent is gone."""
        told = self.line.recv(64)
        return int(told) if told.isdigit() else None

    def end(self, exit_code: int) -> None:
        self.line.send(str(exit_code).encode())


def _real(token: str) -> str:
    if not token:
        raise PermissionError("this job has no token")
    return token


def _prove(token: str, who: str, agents: bytes, hosts: bytes) -> bytes:
    return hmac.digest(token.encode(), who.encode() + agents + hosts, "sha256")
