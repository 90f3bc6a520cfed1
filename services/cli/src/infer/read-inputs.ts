import type { ProcessEnvironment } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { ModelMetadata } from '@tutti/protocol'
import type { NamedTensor } from '@tutti/tensor'
import type { InferFlags } from './infer-flags.ts'
import { readNamed } from './named-flags.ts'
import { readGiven } from './open-client.ts'
import { parseShape } from './parse-shape.ts'
import { type InputSource, readInput } from './read-input.ts'

type Flags = Pick<InferFlags, 'input' | 'shape'>

/** The one model that a command names. @throws ServeError FLAG_INVALID */
export function readModelName(positionals: readonly string[]): string {
  const [model, ...more] = positionals
  if (model !== undefined && more.length === 0) return model
  throw new ServeError('FLAG_INVALID', `got ${positionals.length} model names, want one`)
}

/** The inputs that `--input` and `--shape` give. @throws ServeError FLAG_INVALID, or INVALID_REQUEST for what does not fit. */
export async function readInputs(
  metadata: ModelMetadata,
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
      return readInput(declared, await openSource(text, environment))
    }),
  )
}

async function openSource(text: string, { input }: ProcessEnvironment): Promise<InputSource> {
  if (!text.startsWith('@')) return { kind: 'literal', text }
  const name = text.slice(1)
  if (name !== '-') return { kind: 'file', name, bytes: await readGiven('input', name) }
  const parts: Buffer[] = []
  for await (const part of input ?? []) parts.push(Buffer.from(part))
  return { kind: 'file', name, bytes: Buffer.concat(parts) }
}
