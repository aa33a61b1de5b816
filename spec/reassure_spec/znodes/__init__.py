"""Znode paths and contents: Kafka's own formats, and those of the KIP-236 request protocol.

Paths are relative to a cluster's chroot. Contents are JSON whose key order means nothing, so
contents are compared as decoded records, never as bytes. Decoding checks the *shape* and raises
`BadZnode`; whether a well-formed request makes sense (does the partition exist, is a replica named
twice) is a rule, and rules are the model's and the controller's own business.
"""

# Whoever uses a format does not care in which of these it is written down.
from reassure_spec.znodes.client_requests import *  # noqa: F403
from reassure_spec.znodes.json_contents import *  # noqa: F403
from reassure_spec.znodes.paths import *  # noqa: F403
from reassure_spec.znodes.registrations import *  # noqa: F403
from reassure_spec.znodes.topics import *  # noqa: F403
