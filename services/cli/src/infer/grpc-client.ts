import { ServeError } from '@tutti/errors'
import { InferenceClient } from '@tutti/protocol'
import type { ModelClient, ModelClientOptions } from './model-client.ts'

/** Triton's. */
const DEFAULT_PORT = '8001'

/** A client over gRPC, with streams for decoupled models. */
export function openGrpcClient({ url, tls, headers, timeoutMs }: ModelClientOptions): ModelClient {
  const client = new InferenceClient({
    address: `${url.hostname}:${url.port || DEFAULT_PORT}`,
    ...(url.protocol === 'grpcs:' && { tls }),
  })
  const options = { headers, ...(timeoutMs !== undefined && { timeoutMs }) }
  return {
    metadata: (model, version) => client.metadata(model, version, options),
    async *infer(request, { isDecoupled }) {
      if (!isDecoupled) {
        yield await client.infer(request, options)
        return
      }
      const stream = client.openStream(options)
      await stream.send(request)
      stream.end()
      for await (const { errorMessage, response } of stream.responses()) {
        if (errorMessage !== '') throw new ServeError('INVALID_REQUEST', errorMessage)
        if (response !== undefined) yield response
      }
    },
    models: () => client.readyModels(options),
    close: () => client.close(),
  }
}
