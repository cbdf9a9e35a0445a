"""Files that are cut, gone, changed or strange, and what the stream says of them: for tools/faults.py."""

import shutil
from pathlib import Path

from fault_place import (
    ROWS,
    STREAM,
    BrokenError,
    Place,
    at_work,
    part_of,
    rerun,
)


def older_table(place: Place) -> None:
    """The newest commit of the table of changes is missing, as in a copy of yesterday."""
    with at_work(place):
        pass
    rerun(place)
    commits = sorted(
        (place.root / "tables" / "changes" / STREAM / "_delta_log").glob("*.json")
    )
    commits[-1].unlink()
    rerun(place)


def flipped_state(place: Place) -> None:
    """One bit of every file of the engine's state is another one."""
    with at_work(place):
        pass
    for path in sorted((place.stream / "local").rglob("*")):
        data = bytearray(path.read_bytes()) if path.is_file() else b""
        if data:
            data[place.rng.randrange(len(data))] ^= 1 << place.rng.randrange(8)
            path.write_bytes(data)
    rerun(place)


def torn_records(place: Place) -> None:
    """The small files beside the log are cut to nothing: positions of readers, status, lease."""
    with at_work(place):
        pass
    for path in [
        *(place.stream / "log" / "readers").glob("*.json"),
        *place.stream.glob("*.json"),
    ]:
        if path.name != "topology.json":
            path.write_bytes(b"")
    rerun(place)


def torn_segment(place: Place) -> None:
    """A segment is cut in half: the engine must stop and name it; when it is whole again, nothing is lost."""
    with at_work(place):
        pass
    segment = sorted((place.stream / "log").rglob("*.seg"))[-2]
    data = segment.read_bytes()
    segment.write_bytes(data[: len(data) // 2])
    shutil.rmtree(
        place.stream / "local", ignore_errors=True
    )  # all of it must be read again
    _run_names(place, segment, "a torn segment")
    segment.write_bytes(data)
    rerun(place)


def torn_packet(place: Place) -> None:
    """A byte of a packet is another one: decoded anew from its raw bytes, which run and `verify` tell; else refused."""
    segment, raw = _packet(place)
    data = bytearray(segment.read_bytes())
    data[-1 - place.rng.randrange(len(data) // 2)] ^= 1
    whole = segment.read_bytes()
    segment.write_bytes(bytes(data))
    shutil.rmtree(
        place.stream / "local", ignore_errors=True
    )  # all of it must be read again
    rerun(place)
    alerts = (place.root / "alerts.jsonl").read_text()
    if alerts.count(f"{segment.name} is damaged") != 1:
        raise BrokenError(f"a torn packet was to be told once: {alerts.strip()[-300:]}")
    _verify_says(place, f"{segment.name} is damaged")
    aside = Path(shutil.move(raw, place.notes / raw.name))
    shutil.rmtree(place.stream / "local")
    _run_names(place, segment, "a torn packet")
    shutil.copy(aside, raw)
    rerun(place)
    segment.write_bytes(whole)


def torn_raw(place: Place) -> None:
    """Raw bytes of one packet are cut, those of another are gone: nobody needs them; `verify` names both."""
    _, raw = _packet(place)
    raw.write_bytes(raw.read_bytes()[:-7])
    rerun(place)
    _verify_says(place, f"{raw.name} is damaged")
    raw.unlink()
    _verify_says(place, "raw bytes of 1 packet")
    rerun(place)


def _run_names(place: Place, segment: Path, fault: str) -> None:
    """The engine must stop with an error for people that names the segment."""
    done = place.call("run", STREAM, "--engine", "local", "--until-idle")
    is_named = done.returncode == 2 and segment.name in done.stderr
    if not is_named or "Traceback" in done.stderr:
        said = done.stderr.strip()[-200:]
        raise BrokenError(f"{fault}: run ended with {done.returncode}: {said}")


def _packet(place: Place) -> tuple[Path, Path]:
    """A packet of a stream that makes such, and its raw bytes; all processes are killed."""
    place.codec, place.rows = "packet", 4 * ROWS
    with at_work(place):
        pass
    raw = min((place.stream / "log" / "raw").rglob("*.raw"))
    return next(
        (place.stream / "log" / "segments").rglob(f"{raw.name.split('-')[0]}.seg")
    ), raw


def _verify_says(place: Place, what: str) -> None:
    done = place.call("verify")
    said = done.stdout + done.stderr
    if what not in said or "Traceback" in said:
        raise BrokenError(f"verify does not say {what!r}: {said.strip()[-300:]}")


def stray_file(place: Place) -> None:
    """Somebody puts a file among the segments: the feed and the engine go on, or say which it is."""
    with at_work(place):
        pass
    folder = max((place.stream / "log" / "segments").iterdir())
    stray = folder / "notes.txt"
    stray.write_text("do not delete")
    part = place.notes / "stray.csv"
    part.write_text(part_of(10_000, place.rng))
    done = place.call("replay", STREAM, str(part), "--no-end")
    if (
        done.returncode not in (0, 2)
        or "Traceback" in done.stderr
        or (done.returncode and stray.name not in done.stderr)
    ):
        raise BrokenError(
            f"a stray file: replay ended with {done.returncode}: {done.stderr.strip()[-200:]}"
        )
    stray.unlink()
    rerun(place)
