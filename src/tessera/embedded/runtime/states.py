"""What a container is doing, as the API tells it."""

from datetime import UTC, datetime

import msgspec

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.runtime.parts import part
from tessera.embedded.runtime.process import Exit

LOST = "ContainerStatusUnknown"


class Waiting(msgspec.Struct, frozen=True):
    reason: str
    message: str = ""


class Running(msgspec.Struct, frozen=True):
    since: datetime


class Terminated(msgspec.Struct, frozen=True, kw_only=True):
    exit_code: int
    reason: str
    message: str = ""
    signal: int = 0
    started_at: datetime | None = None
    finished_at: datetime


State = Waiting | Running | Terminated


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """All that is told about one container. `started` is false until a startup probe has been passed."""

    name: str
    image: str
    state: State
    last: Terminated | None = None
    restarts: int = 0
    container_id: str = ""
    ready: bool = False
    started: bool = False

    def document(self) -> Document:
        return {
            "name": self.name,
            "image": self.image,
            "imageID": self.image if self.container_id else "",
            "containerID": self.container_id,
            "state": _state_document(self.state),
            "lastState": _state_document(self.last) if self.last else {},
            "restartCount": self.restarts,
            "ready": self.ready,
            "started": self.started,
        }


def ended(exited: Exit, started_at: datetime, *, out_of_memory: bool, message: str) -> Terminated:
    reason = "Completed" if exited.code == 0 else "OOMKilled" if out_of_memory else "Error"
    return Terminated(
        exit_code=exited.code,
        signal=exited.signal,
        reason=reason,
        message=message,
        started_at=started_at,
        finished_at=exited.at,
    )


CREATING, INITIALIZING = Waiting("ContainerCreating"), Waiting("PodInitializing")


def read_record(container: Frozen, told: Frozen | None, now: datetime, *, waiting: Waiting = CREATING) -> Record:
    """Go on from what was last told of a container. One that ran then was lost with the runtime that ran it."""
    record = Record(name=container["name"], image=container.get("image", ""), state=waiting)
    if not told:
        return record
    last = _read_terminated(part(told, "lastState"))
    state = _read_terminated(part(told, "state"))
    if state is None and (running := part(told, "state", "running")):
        message = "The container was lost when the engine that ran it ended"
        began = _read_time(running.get("startedAt"))
        state = Terminated(exit_code=137, reason=LOST, message=message, started_at=began, finished_at=now)
    return msgspec.structs.replace(
        record,
        state=state or waiting,
        last=last,
        restarts=told.get("restartCount", 0),
        container_id=told.get("containerID", ""),
    )


def write_time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _state_document(state: State) -> Document:
    match state:
        case Waiting():
            return {"waiting": _without_empty({"reason": state.reason, "message": state.message})}
        case Running():
            return {"running": {"startedAt": write_time(state.since)}}
        case Terminated():
            facts: Document = {"message": state.message, "signal": state.signal}
            facts |= {"startedAt": write_time(state.started_at or state.finished_at)}
            facts |= {"finishedAt": write_time(state.finished_at), "reason": state.reason}
            return {"terminated": {"exitCode": state.exit_code, **_without_empty(facts)}}


def _read_terminated(state: Frozen) -> Terminated | None:
    told = state.get("terminated")
    if not told:
        return None
    return Terminated(
        exit_code=told.get("exitCode", 0),
        reason=told.get("reason", ""),
        message=told.get("message", ""),
        signal=told.get("signal", 0),
        started_at=_read_time(told.get("startedAt")),
        finished_at=_read_time(told.get("finishedAt")) or datetime.fromtimestamp(0, UTC),
    )


def _read_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _without_empty(document: Document) -> Document:
    return {key: value for key, value in document.items() if value}
