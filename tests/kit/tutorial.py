"""Runs a tutorial as a reader would: writes its files, types its commands, and compares what they say with the page.

A block of the page whose first line names a file is that file:

    ```sql queries.sql           written as queries.sql
    ```console                   lines that begin with "$ " are typed, the others are what they say
    ```console until             the same, again and again until it says that: something else has to happen first

`..` in what a command says stands for any text, on a line of its own for any lines. A command that ends with ` &` runs
beside the others until the tutorial ends. Ports of the page are exchanged for free ones.
"""

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.ports import free_ports

PATIENCE_S = 180.0
_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_EXPORT = re.compile(r"export (\w+)=(.*)")
_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A command, and what it says."""

    command: str
    says: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Reader:
    """Somebody who follows a tutorial in a folder.

    Attributes:
        folder: where it is followed; what the tutorial needs lies there.
        env: the variables of the environment.
        ports: the ports of the page, each with the one that stands for it here.
    """

    folder: Path
    env: dict[str, str]
    ports: Mapping[str, str]
    _beside: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def follow(self, page: Path) -> int:
        """Follows a page from its beginning to its end; gives back how many commands were typed.

        Raises:
            AssertionError: a command says something else than the page, or fails where the page shows no error.
        """
        typed = 0
        try:
            for language, what, body in _BLOCK.findall(page.read_text("utf-8")):
                typed += self._take(language, what, self._here(body))
        finally:
            self._end()
        return typed

    def _take(self, language: str, what: str, body: str) -> int:
        if language != "console":
            if what:
                self._write(what, body)
            return 0
        commands = list(typed_in(body))
        until_s = time.monotonic() + (PATIENCE_S if what == "until" else 0.0)
        while wrong := self._wrong(commands):
            if time.monotonic() >= until_s:
                raise AssertionError(wrong)
            time.sleep(_AGAIN_S)
        return len(commands)

    def _write(self, name: str, body: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")

    def _wrong(self, commands: list[Typed]) -> str:
        """What is not as the page says; "" when all is."""
        for typed in commands:
            if typed.command.endswith(" &"):
                self._begin(typed.command[:-2])
            elif variable := _EXPORT.fullmatch(typed.command):
                self.env[variable[1]] = variable[2]
            elif wrong := self._run(typed):
                return wrong
        return ""

    def _run(self, typed: Typed) -> str:
        done = subprocess.run(
            ["bash", "-c", typed.command],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        may_fail = typed.says[:1] != () and typed.says[0].startswith("error:")
        is_fine = done.returncode == 0 or may_fail
        if is_fine and (not typed.says or is_said(typed.says, done.stdout)):
            return ""
        wanted = "\n".join(typed.says)
        return f"$ {typed.command}\n{done.stdout}(exit code {done.returncode}); the page says\n{wanted}"

    def _begin(self, command: str) -> None:
        """Runs a command beside the others, and waits until it listens on its port, where it names one."""
        log = (self.folder / "beside.log").open("ab")
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.env,
            stdout=log,
            stderr=log,
        )
        log.close()
        self._beside.append(process)
        for port in self.ports.values():
            if port in command:
                self._wait_for(int(port), process)

    def _wait_for(self, port: int, process: subprocess.Popen[bytes]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not _is_listening(port):
            if process.poll() is not None or time.monotonic() > until_s:
                raise AssertionError((self.folder / "beside.log").read_text("utf-8"))
            time.sleep(_AGAIN_S)

    def _here(self, text: str) -> str:
        """A text of the page with the ports of here."""
        for port, here in self.ports.items():
            text = re.sub(rf"\b{port}\b", here, text)
        return text

    def _end(self) -> None:
        """Ends what runs beside, the last one first."""
        for process in reversed(self._beside):
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def typed_in(body: str) -> Iterator[Typed]:
    """The commands of a block with what they say; a line that ends with a backslash goes on in the next one."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        length = next(n for n, line in enumerate(lines, 1) if not line.endswith("\\"))
        command = "\n".join(lines[:length])
        yield Typed(command=command, says=tuple(lines[length:]))


def is_said(says: tuple[str, ...], output: str) -> bool:
    r"""Whether an output is what a page says; blanks at the ends of lines do not count.

    ("a ..", "..", "z")    of    "a b\n1\n2\nz\n"    ->    True
    """
    pattern = "".join(map(_as_pattern, says))
    lines = [line.rstrip() for line in output.rstrip("\n").split("\n")]
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def _as_pattern(line: str) -> str:
    if line == "..":
        return r"(?:.*\n)*?"
    return re.escape(line.rstrip()).replace(r"\.\.", ".*") + r"\n"


def ports_for(ports: tuple[str, ...]) -> dict[str, str]:
    """A free port of this machine in the place of each."""
    return dict(zip(ports, map(str, free_ports(len(ports))), strict=True))


def environment(binaries: Path) -> dict[str, str]:
    """The environment of a reader who has installed Fairway; no settings come from outside."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FAIRWAY_")}
    return {
        **kept,
        "PATH": f"{binaries}{os.pathsep}{kept['PATH']}",
        "LC_ALL": "C.UTF-8",
    }


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
