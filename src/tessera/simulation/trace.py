"""Reading a trace: a node list and a pod list as CSV, with the columns of the openb trace.

Shares of a card are given in thousandths. Here a card has a thousand MiB, so that a share is exactly as much memory;
a whole card is asked for with all of its cores. Fractions of openb are memory alone: any number of them may share.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from tessera.errors import InvalidTrace
from tessera.model.devices import Device, Host, Node
from tessera.model.requests import (
    ANY_CARD,
    CardSelector,
    ContainerRequest,
    DeviceRequest,
    HostRequest,
    PodRequest,
    Role,
)
from tessera.simulation.scenario import CARD_MILLI, Arrival, Scenario, refuse_twins

VENDOR = "NVIDIA"
MIB = 2**20
PODS_PER_NODE = 10_000
MAX_CARDS = 128
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")

Row = dict[str, str]


def read_trace(nodes_file: Path, pods_file: Path) -> Scenario:
    nodes = tuple(_node(row, where) for where, row in _rows(nodes_file, NODE_COLUMNS))
    pods = tuple(_arrival(row, where) for where, row in _rows(pods_file, POD_COLUMNS))
    refuse_twins(nodes_file, nodes)
    if not sum(len(node.devices) for node in nodes):
        raise InvalidTrace(f"{nodes_file}: no node has a card, expected at least one")
    if not sum(pod.milli for pod in pods):
        raise InvalidTrace(f"{pods_file}: no pod asks for a card, expected at least one")
    return Scenario(pods_file.stem, nodes, tuple(sorted(pods, key=lambda pod: pod.name)))


def make_node(name: str, *, cpu_milli: int, memory_mib: int, cards: int, model: str) -> Node:
    devices = tuple(
        Device(
            uuid=f"{name}-{index}",
            index=index,
            vendor=VENDOR,
            model=model,
            slots=CARD_MILLI,
            memory_mib=CARD_MILLI,
        )
        for index in range(cards)
    )
    return Node(
        name=name, host=Host(cpu_milli=cpu_milli, memory_bytes=memory_mib * MIB, pods=PODS_PER_NODE), devices=devices
    )


def make_arrival(
    name: str, *, cpu_milli: int, memory_mib: int, cards: int, milli: int, models: tuple[str, ...] = ()
) -> Arrival:
    host = HostRequest(cpu_milli=cpu_milli, memory_bytes=memory_mib * MIB)
    if not cards:
        return Arrival(name, PodRequest(host=host), 0)
    device = DeviceRequest(
        vendor=VENDOR,
        count=cards,
        memory_mib=milli,
        cores_percent=100 if milli == CARD_MILLI else 0,
        selector=CardSelector(use_types=models) if models else ANY_CARD,
    )
    containers = (ContainerRequest(Role.APP, (device,)),)
    return Arrival(name, PodRequest(containers=containers, host=host), cards * milli)


def _node(row: Row, where: str) -> Node:
    return make_node(
        _text(row, "sn", where),
        cpu_milli=_number(row, "cpu_milli", where),
        memory_mib=_number(row, "memory_mib", where),
        cards=_number(row, "gpu", where, most=MAX_CARDS),
        model=row["model"].strip(),
    )


def _arrival(row: Row, where: str) -> Arrival:
    cards = _number(row, "num_gpu", where, most=MAX_CARDS)
    milli = _number(row, "gpu_milli", where, most=CARD_MILLI)
    if bool(cards) != bool(milli):
        raise InvalidTrace(f"{where}: num_gpu is {cards} and gpu_milli is {milli}, expected both to be zero or neither")
    models = dict.fromkeys(model.strip() for model in (row.get("gpu_spec") or "").split("|") if model.strip())
    return make_arrival(
        _text(row, "name", where),
        cpu_milli=_number(row, "cpu_milli", where),
        memory_mib=_number(row, "memory_mib", where),
        cards=cards,
        milli=milli,
        models=tuple(models),
    )


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, Row]]:
    reader = csv.DictReader(io.StringIO(_read(file)), strict=True)
    try:
        missing = [column for column in columns if column not in (reader.fieldnames or ())]
        if missing:
            raise InvalidTrace(
                f"{file}: no column {', '.join(missing)}, expected {', '.join(columns)} in the first line"
            )
        for row in reader:
            where = f"{file}, line {reader.line_num}"
            if any(row.get(column) is None for column in columns) or None in row:
                raise InvalidTrace(f"{where}: expected {len(reader.fieldnames or ())} values separated by commas")
            yield where, row
    except csv.Error as error:
        raise InvalidTrace(f"{file}, line {reader.line_num}: not CSV, {error}") from error


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidTrace(f"{file} cannot be read: {error.strerror}; give the path of a CSV file") from error
    except UnicodeDecodeError as error:
        raise InvalidTrace(f"{file} is not UTF-8 text, expected a CSV file") from error


def _text(row: Row, column: str, where: str) -> str:
    value = row[column].strip()
    if not value:
        raise InvalidTrace(f"{where}: {column} is empty, expected a name")
    return value


def _number(row: Row, column: str, where: str, *, most: int = 2**40) -> int:
    value = row[column].strip()
    number = int(value) if value.isascii() and value.isdigit() and len(value) <= 18 else -1
    if not 0 <= number <= most:
        raise InvalidTrace(f'{where}: {column} is "{value[:40]}", expected a whole number from 0 to {most}')
    return number
