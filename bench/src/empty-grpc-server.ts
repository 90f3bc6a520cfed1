import { Server, ServerCredentials } from '@grpc/grpc-js'
import { inferenceServices } from '@tutti/protocol'

/*
 * The least that a gRPC server on grpc-js can do: one unary method that gives back the bytes that came, with the library's
 * default options. A process of its own, so that it shares no thread with what it is compared with.
 */

const { ModelInfer } = inferenceServices().inference
const server = new Server()
const bytes = (value: Buffer): Buffer => value

server.addService(
  {
    ModelInfer: {
      path: ModelInfer.path,
      requestStream: false,
      responseStream: false,
      requestSerialize: bytes,
      requestDeserialize: bytes,
      responseSerialize: bytes,
      responseDeserialize: bytes,
    },
  },
  {
    ModelInfer: (
      call: { readonly request: Buffer },
      callback: (error: null, value: Buffer) => void,
    ) => callback(null, call.request),
  },
)
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, grpcPort) => {
  if (error !== null) throw error
  process.stdout.write(`${JSON.stringify({ message: 'server ready', grpcPort })}\n`)
})
process.once('SIGTERM', () => server.forceShutdown())
