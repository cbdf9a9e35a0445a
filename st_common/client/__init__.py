"""The Python client: registering queries, following their answers, putting fixes, asking the past; behind `fairway`.

One interface (`interface`) on a home folder of this machine (`home_client`) and on a server (`http_client`). It
computes nothing itself but for `evaluate`, which makes a home of its own. Begin with `client`, then `interface`.
"""

from st_common.client.home_client import HomeClient
from st_common.client.interface import QueryId
from st_common.client.registration import Registration
from st_common.client.tuples import MultiTuple
from st_common.query.tuples import Element, Feature

__all__ = ["Element", "Feature", "HomeClient", "MultiTuple", "QueryId", "Registration"]
