"""A second reader of the annotations, written from their description alone and as naively as can be.

It knows nothing of tessera: where it and our codecs agree on a golden file, both read the form that was described.
"""

import json
from typing import Any

Fields = dict[str, Any]


def read_seven_fields(text: str) -> list[Fields]:
    return [_card(entry, "id count devmem devcore type numa health") for entry in text.split(":")[:-1]]


def read_nine_fields(text: str) -> list[Fields]:
    return [_card(entry, "id count devmem devcore type numa health index mode") for entry in text.split(":")[:-1]]


def read_six_fields(text: str) -> list[Fields]:
    return [_card(entry, "id count devmem type health mode") for entry in text.split(":")[:-1]]


def read_json_register(text: str) -> list[Fields]:
    omitted = {"index": 0, "numa": 0, "health": False, "migProfiles": [], "custominfo": {"NetworkID": 0}}
    return [{**omitted, **card} for card in json.loads(text)]


def read_metax_register(text: str) -> list[Fields]:
    return [{"numa": 0, "healthy": False, "linkZone": 0, **card} for card in json.loads(text)]


def read_enflame_register(text: str, node: str) -> list[Fields]:
    register = json.loads(text)
    gigabytes = max(int(name.split("g.")[1].removesuffix("gb")) for name in register["profiles"])
    return [
        {
            "id": f"{node}-enflame-drs-{card['index']}",
            "index": int(card["index"]),
            "count": card["capacity"],
            "devmem": gigabytes * 1024,
            "profiles": list(register["profiles"]),
        }
        for card in register["devices"]
    ]


def read_handshake(text: str) -> tuple[str, str]:
    """The state and the digits of the time, to the second."""
    state = "Requesting" if "Requesting" in text else "Deleted" if "Deleted" in text else "Reported"
    return state, "".join(c for c in text if c.isdigit())[:14]


def read_containers(text: str) -> list[list[Fields]]:
    return [read_flat(container) for container in text.split(";")[:-1]]


def read_joined(text: str) -> list[list[Fields]]:
    """As Volcano writes it: between two containers stands a `;`, after the last one none."""
    return [read_flat(container) for container in text.split(";")]


def read_flat(text: str) -> list[Fields]:
    cards = [entry.split(",") for entry in text.split(":") if entry]
    return [{"uuid": c[0], "type": c[1], "memory": int(c[2]), "cores": int(c[3])} for c in cards]


def read_json(text: str) -> Any:
    return json.loads(text)


def read_weights(text: str) -> dict[str, int]:
    return {pair.split("=")[0]: int(pair.split("=")[1]) for pair in text.split(",")}


def _card(entry: str, names: str) -> Fields:
    fields: Fields = dict(zip(names.split(), entry.split(","), strict=True))
    for name in ("count", "devmem", "devcore", "numa", "index"):
        if name in fields:
            fields[name] = int(fields[name])
    return {**fields, "health": fields["health"] == "true"}
