"""Documents as YAML that people read: in the order in which they were made, and with nothing said by reference."""

from typing import Any

import yaml


class _Plain(yaml.SafeDumper):
    """Repeats what stands in two places, where YAML would refer from one to the other."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def as_yaml(*documents: dict[str, Any]) -> str:
    return yaml.dump_all(documents, Dumper=_Plain, sort_keys=False, width=120)
