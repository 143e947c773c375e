"""Work in the background of a process."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

Work = Coroutine[Any, Any, None]


@contextlib.asynccontextmanager
async def running(*works: Work) -> AsyncGenerator[None]:
    """Work in the background for as long as the block lasts; if one fails, all end with its error."""
    try:
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(work) for work in works]
            yield
            for task in working:
                task.cancel()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
