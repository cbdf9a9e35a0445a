"""Where the bytes of a home lie: one small port, and the local disk behind it."""

from st_common.storage.local import LocalStorage, refused
from st_common.storage.protocol import Storage

__all__ = ["LocalStorage", "Storage", "refused"]
