"""Graph to capture file and back. Nothing in a file is ever executed."""

from gradinspect.storage.decoding import decode_graph
from gradinspect.storage.encoding import SCHEMA_VERSION, encode_graph
from gradinspect.storage.files import read_graph, write_file
from gradinspect.storage.leftovers import remove_old_folders
from gradinspect.storage.unpacking import MAX_BYTES

__all__ = [
    "MAX_BYTES",
    "SCHEMA_VERSION",
    "decode_graph",
    "encode_graph",
    "read_graph",
    "remove_old_folders",
    "write_file",
]
