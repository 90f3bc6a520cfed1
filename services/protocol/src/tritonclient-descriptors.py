"""Prints what tritonclient's descriptors say, one line per field, enum value and method, for descriptors.test.ts.

With `served`: those of the files that stand on standard input, a FileDescriptorProto in base64 on each line.
"""

import base64
import sys

from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.descriptor_pool import DescriptorPool
from tritonclient.grpc import model_config_pb2, service_pb2

SCALARS = {
    F.TYPE_DOUBLE: "double",
    F.TYPE_FLOAT: "float",
    F.TYPE_INT64: "int64",
    F.TYPE_UINT64: "uint64",
    F.TYPE_INT32: "int32",
    F.TYPE_UINT32: "uint32",
    F.TYPE_BOOL: "bool",
    F.TYPE_STRING: "string",
    F.TYPE_BYTES: "bytes",
}


def type_of(field):
    if field.type == F.TYPE_MESSAGE:
        return field.message_type.full_name
    if field.type == F.TYPE_ENUM:
        return field.enum_type.full_name
    return SCALARS[field.type]


def is_map(field):
    return field.type == F.TYPE_MESSAGE and field.message_type.GetOptions().map_entry


def describe_field(message, field):
    if is_map(field):
        key, value = field.message_type.fields
        kind = f"map<{type_of(key)},{type_of(value)}>"
    else:
        kind = ("repeated " if field.is_repeated else "") + type_of(field)
    oneof = f" of {field.containing_oneof.name}" if field.containing_oneof else ""
    print(f"{message.full_name}.{field.name} = {field.number}: {kind}{oneof}")


def describe_enum(enum):
    for value in enum.values:
        print(f"{enum.full_name}.{value.name} = {value.number}")


def describe_message(message):
    print(f"message {message.full_name}")
    for field in message.fields:
        describe_field(message, field)
    for enum in message.enum_types:
        describe_enum(enum)
    for nested in message.nested_types:
        if not nested.GetOptions().map_entry:
            describe_message(nested)


def read_served():
    pool = DescriptorPool()
    return [pool.AddSerializedFile(base64.b64decode(line)) for line in sys.stdin]


served = sys.argv[1:] == ["served"]
for file in read_served() if served else (service_pb2.DESCRIPTOR, model_config_pb2.DESCRIPTOR):
    for message in file.message_types_by_name.values():
        describe_message(message)
    for enum in file.enum_types_by_name.values():
        describe_enum(enum)
    for service in file.services_by_name.values():
        for method in service.methods:
            request = "stream " if method.client_streaming else ""
            response = "stream " if method.server_streaming else ""
            print(
                f"{service.full_name}.{method.name}: {request}{method.input_type.full_name}"
                f" -> {response}{method.output_type.full_name}"
            )
