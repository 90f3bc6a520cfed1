import { ServeError } from '@tutti/errors'
import { encodeInferRequest } from '@tutti/protocol'
import { InferenceClient } from '@tutti/protocol/client'
import { lateAnswer, type ModelClient, type ModelClientOptions } from './model-client.ts'

/** Triton's. */
const DEFAULT_PORT = '8001'

/** Opens a client over gRPC, with streams for decoupled models. The caller closes the client. */
export function openGrpcClient(o: ModelClientOptions): ModelClient {
  const { url, tls, headers, timeoutMs, lookUpMs } = o
  const address = `${url.hostname}:${url.port || DEFAULT_PORT}`
  const client = new InferenceClient({ address, ...(url.protocol === 'grpcs:' && { tls }) })
  const options = { headers, ...(timeoutMs !== undefined && { timeoutMs }) }
  const lookUp = { headers, timeoutMs: lookUpMs }
  const refuse = (error: unknown): never => {
    const { code } = ServeError.from(error)
    throw code === 'DEADLINE_EXCEEDED' ? lateAnswer(address, lookUpMs, error) : error
  }
  return {
    metadata: (model, version) => client.metadata(model, version, lookUp).catch(refuse),
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
    prepare(request, { isDecoupled }) {
      const encoded = encodeInferRequest(request)
      if (!isDecoupled) {
        return async (signal) => void (await client.inferEncoded(encoded, { ...options, signal }))
      }
      return async (signal) => {
        const stream = client.openStream({ ...options, signal })
        // The end of the stream says why a request could not be sent.
        void stream.sendEncoded(encoded).catch(() => {})
        stream.end()
        for await (const { errorMessage } of stream.responses()) {
          if (errorMessage !== '') throw new ServeError('INVALID_REQUEST', errorMessage)
        }
      }
    },
    models: () => client.readyModels(lookUp).catch(refuse),
    close: () => client.close(),
  }
}
