"""Request bodies in protobuf: typed Go clients send nothing else for built-in kinds.

A body becomes the JSON object that the same client would have sent, and is then handled as every JSON body, so no other
package knows of protobuf. Answers are JSON, which all these clients read.

- `messages`: from the numbers and types of fields, which are data, to functions that read messages; and the frame
  around an object that names its kind.
- `special`: the types with a JSON form of their own.  `wire`: the format itself.

Upstream: apimachinery/pkg/runtime/serializer/protobuf, generated.pb.go of each API group.
"""

from konverge.apiserver.protobuf.messages import decode, is_known
from konverge.apiserver.protobuf.wire import ProtobufError

__all__ = ["ProtobufError", "decode", "is_known"]
