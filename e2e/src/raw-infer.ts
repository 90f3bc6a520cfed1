import { Client, credentials, type ServiceError } from '@grpc/grpc-js'
import { inferenceServices } from '@tutti/protocol'
import type { Test } from 'tap'
import type { Target } from './serving.ts'

const LARGEST_MESSAGE = 2 ** 31 - 1
const WINDOW_BYTES = 16 * 1024 * 1024

/** How one ModelInfer ended: with the bytes of the answer, or with an error. */
export interface RawAnswer {
  readonly bytes?: Buffer
  readonly error?: ServiceError
  /** The server had begun to answer, whatever came of it. */
  readonly hasBegun: boolean
}

export type RawClient = ReturnType<typeof openRawClient>

/** A client without any codec on a connection of its own that is closed with the test. */
export function openRawClient(t: Test, target: Pick<Target, 'grpcPort'>) {
  const client = new Client(`127.0.0.1:${target.grpcPort}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': LARGEST_MESSAGE,
    'grpc.max_send_message_length': LARGEST_MESSAGE,
    'grpc-node.flow_control_window': WINDOW_BYTES,
    'grpc.use_local_subchannel_pool': 1,
  })
  t.teardown(() => client.close())
  const { ModelInfer } = inferenceServices().inference
  return {
    /** Sends bytes as they are to ModelInfer. */
    infer: (message: Uint8Array): Promise<RawAnswer> =>
      new Promise((resolve) => {
        let hasBegun = false
        const settle = (error: ServiceError | null, bytes?: Buffer): void =>
          resolve({ hasBegun, ...(error !== null && { error }), ...(bytes && { bytes }) })
        const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
        const { path, requestSerialize, responseDeserialize } = ModelInfer
        const call = client.makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          bytes,
          settle,
        )
        call.once('metadata', () => {
          hasBegun = true
        })
      }),
    close: (): void => client.close(),
  }
}
