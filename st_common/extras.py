"""Which extra of the package brings which library: what was left out at the installation is named, with what to do."""

from importlib.util import find_spec
from types import MappingProxyType

from st_common.errors import ConfigError, SparkError
from st_common.installed import DISTRIBUTION

EXTRA_OF = MappingProxyType(
    {
        "pyspark": "spark",
        "py4j": "spark",
        "delta": "spark",
        "sedona": "spark",
        "cryptography": "spark",
        "great_expectations": "quality",
        "starlette": "server",
        "uvicorn": "server",
        "sse_starlette": "server",
        "vt2pbf": "server",
        "paho": "feeds",
        "websockets": "feeds",
        "confluent_kafka": "feeds",
        "pyogrio": "layers",
        "openlineage": "lineage",
    }
)
"""The extra of each module that the core does without, by the module's first name."""


def how_to_install(extra: str) -> str:
    """What installs an extra: `pip install 'fairway-streams[spark]'`."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def has_module(name: str) -> bool:
    """Whether a module can be imported; it is not."""
    try:
        return find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def missing(error: Exception) -> Exception:
    """The error itself; or one for people that names the extra, when a module is missing that an extra brings."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return error
    name = error.name.partition(".")[0]
    return _lacking(name) if name in EXTRA_OF else error


def of_spark(error: Exception) -> Exception:
    """The error itself; or one for people, of one line, where Spark or the JVM below it raised one."""
    if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
        return error
    hint = "run with --debug, or look into the log, to see where"
    line = java_line(error)
    if "JAVA_GATEWAY_EXITED" in line:
        line, hint = "its Java does not start", "`fairway doctor` looks at JAVA_HOME"
    return SparkError(f"Spark: {line}", hint=hint)


def java_line(failure: Exception) -> str:
    """What the JVM says went wrong, without its stack: `IllegalStateException: Cannot call methods on ..`."""
    lines = str(failure).strip().splitlines() or [type(failure).__name__]
    for line in lines:
        if line.startswith(": "):
            kind, colon, message = line.removeprefix(": ").partition(": ")
            return f"{kind.rpartition('.')[2]}{colon}{message}"
    return lines[0]


def require_module(name: str) -> None:
    """Makes sure that a module is there that an extra brings, before anything is begun that needs it.

    Args:
        name: one of `EXTRA_OF`.

    Raises:
        ConfigError: it is not installed.
    """
    if not has_module(name):
        raise _lacking(name)


def _lacking(name: str) -> ConfigError:
    extra = EXTRA_OF[name]
    return ConfigError(
        f"this needs {name}, which the extra {extra} brings", hint=how_to_install(extra)
    )


def require_engine(engine: str, stream: str) -> None:
    """Makes sure that the engine of a stream is installed; no other one takes its place in silence.

    Raises:
        ConfigError: it is `spark`, and Spark is not installed.
    """
    if engine == "spark" and not has_module("pyspark"):
        raise ConfigError(
            f"stream {stream!r} runs on the engine spark, which is not installed",
            hint=f'{how_to_install("spark")}, or engine = "local" in its settings: answers are the same',
        )
