"""Graph to capture file and back. Nothing in a file is ever executed."""

from gradinspect.storage.comparing import comparable_digest, without_own_device
from gradinspect.storage.decoding import decode_graph
from gradinspect.storage.encoding import SCHEMA_VERSION, encode_graph
from gradinspect.storage.files import read_graph, write_file
from gradinspect.storage.leftovers import remove_old_folders
from gradinspect.storage.unpacking import MAX_BYTES

__all__ = [
    "MAX_BYTES",
    "SCHEMA_VERSION",
    "comparable_digest",
    "decode_graph",
    "encode_graph",
    "read_graph",
    "remove_old_folders",
    "without_own_device",
    "write_file",
]
