"""Where the bytes of a home lie: one small port, and the local disk behind it."""

from st_common.storage.local import (
    LocalStorage,
    bytes_below,
    failed,
    make_folder,
    refused,
    refused_at,
)
from st_common.storage.protocol import Storage

__all__ = [
    "LocalStorage",
    "Storage",
    "bytes_below",
    "failed",
    "make_folder",
    "refused",
    "refused_at",
]
