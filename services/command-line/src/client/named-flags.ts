import { nearestName, ServeError } from '@tutti/errors'
import type { TensorMetadata } from '@tutti/protocol'

/** Reads what a flag gives to tensors of the model. @throws ServeError FLAG_INVALID for one that comes twice. */
export function readNamed(
  flag: 'input' | 'shape' | 'output',
  texts: readonly string[],
  known: readonly TensorMetadata[],
): ReadonlyMap<TensorMetadata, string> {
  const named = new Map(texts.map((text) => splitNamed(flag, text, known)))
  if (named.size === texts.length) return named
  const problem = `one ${flag} came twice, want each once`
  throw new ServeError('FLAG_INVALID', `--${flag}: ${problem}`, { details: { field: flag } })
}

/** NAME=TEXT, where the name is one of those that the model has; names may have a `=` too. */
export function splitNamed(
  flag: string,
  text: string,
  known: readonly TensorMetadata[],
): readonly [TensorMetadata, string] {
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
