"""What a server says was wrong, as the errors that a client on a home folder raises."""

from typing import TYPE_CHECKING

from st_common.errors import ConfigError, FairwayError, QueryError, TransientError

if TYPE_CHECKING:
    import httpx

_KINDS: dict[int, type[FairwayError]] = {
    400: QueryError,
    401: ConfigError,
    404: QueryError,
    413: ConfigError,
    415: ConfigError,
    422: ConfigError,
    429: TransientError,
    503: TransientError,
}


def raise_for(response: "httpx.Response") -> None:
    """Raises what went wrong; nothing when all is well.

    Raises:
        QueryError: what was asked for is wrong, or does not exist.
        ConfigError: the token is wrong, or a body.
        TransientError: it may pass.
        FairwayError: the server met a defect.
    """
    if response.is_success:
        return
    try:
        told = response.json()
        message, hint = str(told["error"]), str(told.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        message, hint = f"the server answers {response.status_code}", ""
    raise _KINDS.get(response.status_code, FairwayError)(message, hint=hint)
