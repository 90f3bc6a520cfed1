import { nearestName, ServeError } from '@tutti/errors'
import type { ReceivedTensorMetadata } from '@tutti/protocol'

/**
 * Reads the values NAME=TEXT of a flag, by the model's tensors.
 *
 * @throws ServeError FLAG_INVALID, also for a name that comes twice.
 */
export function readNamed(
  flag: 'input' | 'shape' | 'output',
  texts: readonly string[],
  known: readonly ReceivedTensorMetadata[],
): ReadonlyMap<ReceivedTensorMetadata, string> {
  const named = new Map(texts.map((text) => splitNamed(flag, text, known)))
  if (named.size === texts.length) return named
  const problem = `one ${flag} came twice, want each once`
  throw new ServeError('FLAG_INVALID', `--${flag}: ${problem}`, { details: { field: flag } })
}

/**
 * Splits NAME=TEXT at the longest name of a tensor that fits, since names may have a `=` too.
 *
 * @throws ServeError FLAG_INVALID if the model has no such tensor.
 */
export function splitNamed(
  flag: string,
  text: string,
  known: readonly ReceivedTensorMetadata[],
): readonly [ReceivedTensorMetadata, string] {
  const [found] = known
    .filter(({ name }) => text.startsWith(`${name}=`))
    .toSorted((a, b) => b.name.length - a.name.length)
  if (found !== undefined) return [found, text.slice(found.name.length + 1)]
  const equals = text.indexOf('=')
  const names = known.map(({ name }) => name)
  const got = equals === -1 ? text : text.slice(0, equals)
  const near = nearestName(got, names)
  const hint =
    near === undefined ? `there is ${names.join(', ') || 'none'}` : `did you mean '${near}'?`
  const problem = names.includes(text)
    ? `got '${text}' without a value, want ${text}=VALUE`
    : `the model has no '${got}'; ${hint}`
  throw new ServeError('FLAG_INVALID', `--${flag}: ${problem}`, { details: { field: flag } })
}
