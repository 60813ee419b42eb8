"""A bar for work of which the parts can be counted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: time between two lines where there is no terminal
_TELL_S = 10.0


@contextmanager
def bar(name: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr; without a terminal, a line every ten seconds."""
    from time import monotonic

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        told_at = monotonic()

        def tell(done: int, of: int) -> None:
            nonlocal told_at
            if monotonic() - told_at >= _TELL_S:
                told_at = monotonic()
                console.print(f"{name}: {done} of {of} {unit}", highlight=False)

        yield tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(name, total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)
