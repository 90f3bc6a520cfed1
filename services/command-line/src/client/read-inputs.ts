import { Readable } from 'node:stream'
import type { ProcessEnvironment } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { ReceivedMetadata, ReceivedTensorMetadata } from '@tutti/protocol'
import { DATATYPES, elementCount, type NamedTensor } from '@tutti/tensor'
import type { InferFlags } from './infer-flags.ts'
import { readNamed } from './named-flags.ts'
import { namingFile } from './open-client.ts'
import { parseShape } from './parse-shape.ts'
import { collectBounded, readBounded } from './read-bounded.ts'
import { type GivenInput, readInput } from './read-input.ts'

/** Most bytes of one tensor, which goes in one message. */
export const MOST_TENSOR_BYTES = 2 ** 31 - 1
/** Bytes that a file may have for each element, more than JSON with spaces takes, and for its header. */
const MOST_ELEMENT_BYTES = 128
const MOST_HEADER_BYTES = 2 ** 20

type Flags = Pick<InferFlags, 'input' | 'shape'>

/** Reads the name of a command's one model. @throws ServeError FLAG_INVALID for no, an empty or several names. */
export function readModelName(positionals: readonly string[]): string {
  const [model, ...more] = positionals
  if (model === '') throw new ServeError('FLAG_INVALID', 'got an empty name, want that of a model')
  if (model !== undefined && more.length === 0) return model
  throw new ServeError('FLAG_INVALID', `got ${positionals.length} model names, want one`)
}

/** Reads the version of `--model-version`; '' lets the server choose. */
export function readVersion(flags: Pick<InferFlags, 'model-version'>): string {
  return String(flags['model-version'] ?? '')
}

/**
 * Reads the inputs of `--input` and `--shape`.
 *
 * @throws ServeError FLAG_INVALID, or INVALID_REQUEST if a value does not fit the model.
 */
export async function readInputs(
  metadata: ReceivedMetadata,
  flags: Flags,
  environment: ProcessEnvironment,
): Promise<readonly NamedTensor[]> {
  const shapes = readNamed('shape', flags.shape, metadata.inputs)
  const given = readNamed('input', flags.input, metadata.inputs)
  for (const tensor of shapes.keys()) {
    if (given.has(tensor)) continue
    const problem = `'${tensor.name}' has no value, want --input ${tensor.name}=VALUE too`
    throw new ServeError('FLAG_INVALID', `--shape: ${problem}`, { details: { field: 'shape' } })
  }
  if ([...given.values()].filter((text) => text === '@-').length > 1) {
    throw new ServeError('FLAG_INVALID', '--input: got @- twice, and there is one standard input')
  }
  return await Promise.all(
    [...given].map(async ([tensor, text]) => {
      const shape = shapes.get(tensor)
      const declared =
        shape === undefined
          ? tensor
          : { ...tensor, shape: parseShape(tensor.name, shape, tensor.shape) }
      return readInput(declared, await openSource(declared, text, environment))
    }),
  )
}

async function openSource(
  declared: ReceivedTensorMetadata,
  text: string,
  { input = Readable.from([]) }: ProcessEnvironment,
): Promise<GivenInput> {
  if (!text.startsWith('@')) return { kind: 'literal', text }
  const name = text.slice(1)
  const most = mostBytesOf(declared)
  const bytes = await namingFile('input', `${declared.name}=${text}`, () =>
    name === '-' ? collectBounded(input, most) : readBounded(name, most),
  )
  return { kind: 'file', name, bytes }
}

/** Returns the most bytes of a file for an input, in whatever form; many more than it needs, since the file may have no end. */
function mostBytesOf({ datatype, shape }: ReceivedTensorMetadata): number {
  if (DATATYPES[datatype].itemSize === null || shape.includes(-1)) return MOST_TENSOR_BYTES
  return Math.min(MOST_TENSOR_BYTES, elementCount(shape) * MOST_ELEMENT_BYTES + MOST_HEADER_BYTES)
}
