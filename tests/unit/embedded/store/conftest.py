from collections.abc import Iterator
from pathlib import Path

import pytest

from tessera.embedded.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    store = Store.open(path)
    yield store
    store.close()
