"""Answers questions for a server, one after the other: `python -m st_common.processes.answer --home H --conf C`.

What it may take is bounded from within: its memory by the system, its time by an alarm that ends it, should the server
that waits for it be gone.
"""

import argparse
import contextlib
import json
import os
import pickle
import resource
import signal
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from starlette.responses import Response

from st_common.answers import sql as _sql  # noqa: F401
from st_common.batch import asking as _asking  # noqa: F401 - before memory is bounded
from st_common.config.home import Home
from st_common.server.endpoints import ENDPOINTS
from st_common.server.installation import Installation
from st_common.server.page.frame import Frame, Frames
from st_common.server.parameters import Kept, Parameters, read_params
from st_common.server.replies import error_reply
from st_common.server.worker_processes import LENGTH, WRITES, WRITING_S, packet

_LATE_S = 2.0
_BY_NAME = {(one.method, one.path): one for one in ENDPOINTS}


def answer(
    head: Mapping[str, Any],
    body: bytes,
    place: Installation,
    before_writing: Callable[[], None],
) -> Response:
    """The answer to one question, or what is wrong with it."""
    one, kept = _BY_NAME[head["method"], head["path"]], Kept()
    if head["last_good"] is not None:
        last_good = pickle.loads(b64decode(head["last_good"]))  # noqa: S301 - of the server
        place = replace(place, last_good=last_good)
    if head["plane"] is not None:
        kept.keep(Frames(Frame(**head["plane"])))
    try:
        asked = Parameters(
            place=place,
            path=head["parts"],
            params=read_params(head["params"], one.params),
            body=body,
            media=head["media"],
            base=head["base"],
            headers={name: text for name, text in head["headers"].items() if text},
            kept=kept,
            is_apart=True,
            before_writing=before_writing,
        )
        reply: Response = one.run(asked)
    except MemoryError:
        os._exit(1)  # the server says that it was too much
    except Exception as error:  # noqa: BLE001 - each is told, and the next is answered
        return error_reply(place, error)
    else:
        return reply
    finally:
        kept.close()


def _questions(pipe: IO[bytes]) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Questions until the server has ended."""
    while len(lengths := pipe.read(LENGTH.size)) == LENGTH.size:
        head, body = LENGTH.unpack(lengths)
        yield json.loads(pipe.read(head)), pipe.read(body)


def _before_writing(pipe: IO[bytes], out: IO[bytes]) -> None:
    """Asks the server whether what was found may be written; what it has given up by then is not."""
    out.write(packet({WRITES: True}, b""))
    out.flush()
    if next(_questions(pipe), None) is None:
        sys.exit(1)
    signal.setitimer(signal.ITIMER_REAL, WRITING_S)


def _bound_memory(megabytes: int) -> None:
    """Lets this process have so much more memory than it has by now, where the system counts it."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("VmData:"))
        most = (int(line.split()[1]) << 10) + (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def main(argv: Sequence[str] | None = None) -> int:
    """Answers until its input ends."""
    parser = argparse.ArgumentParser(prog="answer", description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--conf", type=Path, required=True)
    parser.add_argument("--engine")
    parser.add_argument("--stream", action="append", default=[])
    parser.add_argument("--memory-mb", type=int, required=True)
    given = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints
    place = Installation(
        home=Home(given.home),
        conf=given.conf,
        engine=given.engine,
        only=tuple(given.stream),
    )
    _bound_memory(given.memory_mb)
    out.write(packet({}, b""))
    out.flush()
    before_writing = partial(_before_writing, sys.stdin.buffer, out)
    for head, body in _questions(sys.stdin.buffer):
        signal.setitimer(signal.ITIMER_REAL, head["seconds"] + _LATE_S)
        told = answer(head, body, place, before_writing)
        headers = {
            name: value
            for name, value in told.headers.items()
            if name not in ("content-length", "content-type")
        }
        shown = {"status": told.status_code, "media": told.media_type}
        out.write(packet({**shown, "headers": headers}, bytes(told.body)))
        out.flush()
        signal.setitimer(signal.ITIMER_REAL, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
