"""docker/Dockerfile carried out without a container engine: into a folder for each stage, from what git knows alone.

Each stage has a folder that stands for its `/`. COPY copies what git tracks and .dockerignore lets through; a RUN step
is run by `sh` as it is written, with HOME and the working folder below that folder, and with programs hidden that the
base image lacks. Steps that only a container's root can do, apt-get and useradd, are checked by their words.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
_INSTRUCTIONS = ("FROM", "COPY", "RUN", "ENV", "WORKDIR", "USER")
_LACKS = {
    "node": ("python3", "python", "git", "make", "curl", "java", "mvn", "gcc"),
    "python": ("node", "npm", "npx", "git", "curl", "wget", "gcc", "cc", "uv"),
}
"""Programs of this machine that an image of that name has not, unless a package brings them."""
_MACHINE = re.compile(r"CERT|_CA_|PROXY|^PIP_|^UV_|^NPM_CONFIG_", re.IGNORECASE)
"""Variables by which this machine reaches the registries of packages."""


class DockerfileError(Exception):
    """A step that cannot be carried out: its line, its words and what is wrong."""


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction.

    Attributes:
        line: where it begins, from 1.
        name: of the instruction.
        text: what follows its name, with joined lines.
    """

    line: int
    name: str
    text: str

    def wrong(self, what: str) -> DockerfileError:
        """An error that names the step."""
        return DockerfileError(f"line {self.line}: {self.name} {self.text}: {what}")


@dataclass(slots=True)
class Stage:
    """A stage as far as it is built.

    Attributes:
        name: what `COPY --from` calls it; "" of the last one.
        image: what it starts from.
        root: the folder that is its `/`.
        cwd: the working folder, as the image names it.
        env: the variables that ENV has set, as the image names them.
        users: who owns files.
    """

    name: str
    image: str
    root: Path
    cwd: PurePosixPath = field(default=PurePosixPath("/"))
    env: dict[str, str] = field(default_factory=dict)
    users: set[str] = field(default_factory=lambda: {"root"})

    def here(self, path: str) -> Path:
        """Where a path of the image lies on this machine."""
        return self.root / (self.cwd / path).relative_to("/")

    def environment(self) -> dict[str, str]:
        """The variables of a process in it: the image's own, and those by which registries are reached."""
        own = {name: self._mapped(value) for name, value in self.env.items()}
        home = self._mapped(self.env.get("HOME", "/root"))
        path = f"{self.root}.bin:/usr/local/bin:/usr/bin:/bin"
        return _of_this_machine() | {"PATH": path, "LC_ALL": "C.UTF-8"} | own | {"HOME": home}  # fmt: skip

    def _mapped(self, value: str) -> str:
        return f"{self.root}{value}" if value.startswith("/") else value


def parse(text: str) -> list[Step]:
    """The steps of a Dockerfile.

    Raises:
        DockerfileError: an instruction that is not known here.
    """
    steps: list[Step] = []
    begun: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not (line.strip() or begun):
            continue
        first = first if begun else number
        begun.append(line.removesuffix("\\").strip())
        if line.endswith("\\"):
            continue
        name, _, rest = " ".join(begun).partition(" ")
        step = Step(first, name, rest.strip())
        if name not in _INSTRUCTIONS:
            raise step.wrong(f"known are {', '.join(_INSTRUCTIONS)}")
        steps.append(step)
        begun = []
    return steps


def context(ignore: str, tracked: list[str]) -> list[str]:
    """What of the tracked files the engine is given.

    Args:
        ignore: the text of .dockerignore; of the patterns that match, the last one says.
        tracked: paths from the root of the repository.
    """
    rules = [
        (line.removeprefix("!"), line.startswith("!"))
        for line in ignore.splitlines()
        if line.strip() and not line.startswith("#")
    ]

    def is_given(path: str) -> bool:
        given = True
        for pattern, is_exception in rules:
            if _matches(pattern, path):
                given = is_exception
        return given

    return [path for path in tracked if is_given(path)]


def _matches(pattern: str, path: str) -> bool:
    """Whether a pattern matches a path or a folder above it; `*` stays within a folder, `**/` is any number of them."""
    below = pattern.startswith("**/")
    wanted = pattern.removeprefix("**/").strip("/").split("/")
    parts = path.split("/")
    starts = range(len(parts)) if below else (0,)
    return any(
        len(parts) - start >= len(wanted)
        and all(
            re.match(translate(one), part)
            for one, part in zip(wanted, parts[start:], strict=False)
        )
        for start in starts
    )


def tracked_files(repository: Path = ROOT) -> list[str]:
    """The files that git knows, with those that are new and not ignored, as they lie there now."""
    said = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return sorted(
        path for path in said.split("\0") if path and (repository / path).is_file()
    )


def build(text: str, given: list[str], folder: Path, source: Path = ROOT) -> Stage:
    """Carries all steps out; gives the last stage.

    Args:
        text: of the Dockerfile.
        given: the files that it may copy, from `source`.
        folder: an empty one, for the stages.
        source: the folder that those files lie in.

    Raises:
        DockerfileError: a step that cannot be carried out.
    """
    stages: list[Stage] = []
    for step in parse(text):
        if step.name == "FROM":
            stages.append(_begun(step, folder / str(len(stages))))
        elif not stages:
            raise step.wrong("there is no stage yet")
        elif step.name == "COPY":
            _copy(step, stages, given, source)
        else:
            _CARRY_OUT[step.name](step, stages[-1])
    return stages[-1]


def _begun(step: Step, root: Path) -> Stage:
    image, *named = step.text.split()
    if named and (len(named) != 2 or named[0] != "AS"):
        raise step.wrong("FROM IMAGE [AS NAME]")
    kind = image.partition(":")[0]
    if kind not in _LACKS:
        raise step.wrong(f"known are {', '.join(_LACKS)}")
    root.mkdir(parents=True)
    programs = Path(f"{root}.bin")
    programs.mkdir()
    for name in _LACKS[kind]:
        absent = programs / name
        absent.write_text(f"#!/bin/sh\necho 'the image has no {name}' >&2\nexit 127\n")
        absent.chmod(0o755)
    if kind == "python":
        python = Path(sys.base_prefix, "bin", "python3.11")
        for name in ("python3", "python3.11"):
            (programs / name).symlink_to(python)
    return Stage(named[1] if named else "", image, root)


def _workdir(step: Step, stage: Stage) -> None:
    stage.cwd = stage.cwd / step.text
    stage.here(".").mkdir(parents=True, exist_ok=True)


def _user(step: Step, stage: Stage) -> None:
    if step.text not in stage.users:
        raise step.wrong("no step makes that user")


def _env(step: Step, stage: Stage) -> None:
    for word in shlex.split(step.text):
        name, is_one, value = word.partition("=")
        if not is_one or "$" in value:
            raise step.wrong("NAME=VALUE, without variables")
        stage.env[name] = value


def _copy(step: Step, stages: list[Stage], given: list[str], source: Path) -> None:
    stage = stages[-1]
    words = step.text.split()
    given_flags = [word.partition("=") for word in words if word.startswith("--")]
    flags = {name.removeprefix("--"): value for name, _, value in given_flags}
    *names, target = (word for word in words if not word.startswith("--"))
    if flags.pop("chown", "root") not in stage.users:
        raise step.wrong("no step makes that user")
    place, files = source, given
    if "from" in flags:
        before = {one.name: one.root for one in stages[:-1]}
        place = before.get(flags.pop("from"), Path())
        if place == Path():
            raise step.wrong("there is no such stage")
        names = [name.lstrip("/") for name in names]
        files = [str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()]  # fmt: skip
    if flags or any(set(name) & set("*?[") for name in names):
        raise step.wrong("an option or a pattern that is not known here")
    into = stage.here(target)
    for name in names:
        _copy_one(step, place, name, files, into, is_folder=target.endswith(("/", ".")))


def _copy_one(
    step: Step, place: Path, name: str, files: list[str], into: Path, *, is_folder: bool
) -> None:
    """Copies one file, or what is in a folder."""
    inside = [path for path in files if path == name or path.startswith(f"{name}/")]
    if not inside:
        raise step.wrong(f"{name} is not there, or .dockerignore keeps it out")
    for path in inside:
        to = into / path.removeprefix(f"{name}/")
        if path == name:
            to = into / Path(name).name if is_folder or into.is_dir() else into
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(place / path, to)


def _run(step: Step, stage: Stage) -> None:
    commands = [shlex.split(one) for one in step.text.split("&&")]
    if commands[0][0] in ("apt-get", "useradd"):
        for words in commands:
            if words[0] not in _BY_WORDS:
                raise step.wrong(f"{words[0]} beside {commands[0][0]} is not known")
            _BY_WORDS[words[0]](step, stage, words)
        return
    if re.search(r"(^|[\s='\"])/", step.text):
        raise step.wrong("it names a path of the whole machine")
    done = subprocess.run(
        ["/bin/sh", "-c", step.text],
        cwd=stage.here("."),
        env=stage.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise step.wrong(f"exit code {done.returncode}\n{done.stdout[-8000:]}")


def _apt_get(step: Step, stage: Stage, words: list[str]) -> None:
    """Packages must be there to be installed; what they bring is hidden no longer."""
    if words[1] == "update":
        return
    names = [word for word in words[2:] if not word.startswith("-")]
    if words[1] != "install" or "--yes" not in words or not names:
        raise step.wrong("apt-get install --yes NAME..")
    said = subprocess.run(
        ["apt-cache", "policy", *names], capture_output=True, text=True, check=True
    ).stdout
    found = re.findall(r"^(\S+):\n.*\n  Candidate: (?!\(none\))", said, re.MULTILINE)
    if missing := sorted(set(names) - set(found)):
        raise step.wrong(f"no such package: {', '.join(missing)}")
    for name in names:
        Path(f"{stage.root}.bin", name).unlink(missing_ok=True)


def _rm(step: Step, stage: Stage, words: list[str]) -> None:
    del stage
    if words != ["rm", "-rf", "/var/lib/apt/lists/*"]:
        raise step.wrong("beside apt-get only its lists are removed")


def _useradd(step: Step, stage: Stage, words: list[str]) -> None:
    home = words[words.index("--home-dir") + 1]
    if "--create-home" not in words or home != stage.env.get("HOME"):
        raise step.wrong("its home is not HOME")
    stage.here(home).mkdir(parents=True)
    stage.users.add(words[-1])


def _install(step: Step, stage: Stage, words: list[str]) -> None:
    if words[1] != "-d":
        raise step.wrong("install -d makes folders")
    for path in (word for word in words if word.startswith("/")):
        stage.here(path).mkdir(parents=True)
    for flag in ("-o", "-g"):
        if words[words.index(flag) + 1] not in stage.users:
            raise step.wrong("no step makes that user")


_CARRY_OUT = {"WORKDIR": _workdir, "USER": _user, "ENV": _env, "RUN": _run}
_BY_WORDS = {"apt-get": _apt_get, "rm": _rm, "useradd": _useradd, "install": _install}


def _of_this_machine() -> dict[str, str]:
    """How this machine reaches registries, and where it keeps what it has fetched from them."""
    home = Path.home()
    kept = {
        "UV_CACHE_DIR": home / ".cache" / "uv",
        "PIP_CACHE_DIR": home / ".cache" / "pip",
        "NPM_CONFIG_CACHE": home / ".npm",
        "NPM_CONFIG_USERCONFIG": home / ".npmrc",
        "MAVEN_OPTS": f"-Dmaven.repo.local={home / '.m2' / 'repository'}",
    }
    set_here = {name: value for name, value in os.environ.items() if _MACHINE.search(name)}  # fmt: skip
    return {name: str(value) for name, value in kept.items()} | set_here
