"""Request bodies in protobuf: typed Go clients send nothing else for built-in kinds.

A body becomes the JSON object that the same client would have sent, and then takes the way of every JSON body, so
nothing behind this package knows of protobuf. Answers are JSON, which all these clients read.

- `messages`: from the numbers and types of fields, which are data, to functions that read messages.
- `special`: the types whose JSON form is of their own.  `wire`: the format itself.
- `envelope`: the frame around an object that says of which kind it is.
"""

from konverge.apiserver.protobuf.envelope import decode
from konverge.apiserver.protobuf.wire import ProtobufError

__all__ = ["ProtobufError", "decode"]
