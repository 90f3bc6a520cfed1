"""The name under which tritonclient's messages are pickled; Ray looks for it."""

from tritonclient.grpc.service_pb2 import *  # noqa: F403
