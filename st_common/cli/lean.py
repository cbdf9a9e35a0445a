"""A start without pandas, for a process that answers one question and ends."""

import sys
from importlib.abc import MetaPathFinder

import typer


class _Hidden(MetaPathFinder):
    """Says of pandas that it is not there."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Nothing of any other module."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)


def without_pandas(ctx: typer.Context) -> None:
    """Lets Arrow go on without pandas, where this process does nothing else than this command.

    Arrow imports pandas with the first array of Python's values, to see whether they are its (a third of such a
    process); it asks once. Afterwards Arrow makes no DataFrame in this process; pandas itself can be imported.
    """
    if not ctx.obj.is_alone or "pandas" in sys.modules:
        return
    import pyarrow as pa

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hidden)
