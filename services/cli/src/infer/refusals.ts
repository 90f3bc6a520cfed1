import type { ModelClient } from '@tutti/command-line/client'
import { nearestName, ServeError } from '@tutti/errors'
import type { InferResponse, ReceivedTensorMetadata } from '@tutti/protocol'
import { formatShape } from '@tutti/tensor'

/** Models whose names are listed. */
const MOST_NAMES = 5

/**
 * Throws a server's error again. To NOT_FOUND it adds the server's address, and the names of models that the user may mean.
 *
 * @throws ServeError always.
 */
export async function namingServer(
  caught: unknown,
  o: { readonly client: ModelClient; readonly model: string; readonly url: string },
): Promise<never> {
  const error = ServeError.from(caught)
  if (error.code !== 'NOT_FOUND') throw error
  // Where the server does not list its models, the refusal stands alone.
  const names = await o.client.models().catch(() => undefined)
  const text = `${o.url}: ${error.message}${meant(o.model, names && new Set(names))}`
  throw new ServeError(error.reason, text, { code: error.code, cause: error })
}

function meant(model: string, names: ReadonlySet<string> | undefined): string {
  // With the model among them, its version was refused.
  if (names === undefined || names.has(model)) return ''
  if (names.size === 0) return '; the server has no model that is ready'
  const near = nearestName(model, names)
  if (near !== undefined) return `; did you mean '${near}'?`
  const listed = [...names].slice(0, MOST_NAMES).join(', ')
  return `; there is ${listed}${names.size > MOST_NAMES ? ', ...' : ''}`
}

/**
 * Yields the responses of a request. To an error INVALID_ARGUMENT it adds how to write the absent inputs.
 *
 * @param absent - declared inputs that the request lacks; some may be optional, which only the server knows.
 */
export async function* namingInputs(
  responses: AsyncIterable<InferResponse>,
  absent: readonly ReceivedTensorMetadata[],
): AsyncGenerator<InferResponse> {
  try {
    yield* responses
  } catch (caught) {
    const error = ServeError.from(caught)
    if (absent.length === 0 || error.code !== 'INVALID_ARGUMENT') throw error
    const wanted = absent.map(({ name, datatype, shape }) => {
      return `--input ${name}=VALUE or ${name}=@FILE with ${datatype}${formatShape(shape)}`
    })
    const text = `${error.message}; want ${wanted.join(', ')}`
    throw new ServeError(error.reason, text, { code: error.code, cause: error })
  }
}
