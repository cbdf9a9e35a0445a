"""Fixes that came too late, for whoever asks a server how its streams are."""

from st_common.answers.stream_state import is_much
from st_common.config.stream import StreamSettings
from st_common.operations.status import StreamStatus
from st_common.server.asked import Asked


def late_warnings(
    asked: Asked, stream: StreamSettings, said: StreamStatus | None
) -> list[str]:
    """What is said of a stream of which more than one fix in a hundred came too late, looked at once a minute."""
    if said is None or not is_much(said.late, said.fixes):
        return []
    from st_common.answers.lateness import Warnings

    kept = asked.kept.of(Warnings)
    return kept.of(asked.place.home, stream, late=said.late, fixes=said.fixes)
