"""What went wrong in a worker, out of the many lines of the JVM."""

from st_common.errors import FairwayError


def cause_of(failure: Exception) -> Exception:
    """The error that a worker or the sink raised, in one line; Spark wraps it in its own many."""
    text = str(failure)
    for line in reversed(text.splitlines()):
        if line.startswith("st_common.errors."):
            name, _, message = line.removeprefix("st_common.errors.").partition(": ")
            kind = {sub.__name__: sub for sub in FairwayError.__subclasses__()}.get(
                name, FairwayError
            )
            return kind(message)
    return failure
