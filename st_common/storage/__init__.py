"""Where the bytes of logs, states and small records lie: one small port, and the local disk behind it.

Delta tables go their own way (`tables`). What an object holds is not known here. Begin with `protocol`, then `local`.
"""

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
