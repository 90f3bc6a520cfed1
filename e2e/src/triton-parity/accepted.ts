import { isDeepStrictEqual } from 'node:util'
import { gunzipSync, inflateSync } from 'node:zlib'
import { type Call, type Case, type RestCall, surfaceOf } from './case.ts'
import type { Difference } from './compare.ts'

/** A difference on purpose: a user of Triton would accept it for its reason. */
export interface Accepted {
  readonly name: string
  readonly reason: string
  readonly fits: (difference: Difference, call: Call, test: Case) => boolean
}

/** How many there may be: each is something that a user has to know. */
export const MOST_ACCEPTED = 30

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function isText(path: string): boolean {
  return /(^|\.)(text|error|error_message|reason)$/.test(path)
}

/** Both values are texts of errors, and ours fits. */
function saysOf({ path, triton, tutti }: Difference, ours: RegExp, theirs = /./): boolean {
  return isText(path) && ours.test(textOf(tutti)) && theirs.test(textOf(triton))
}

/** Whether the calls' text has something. */
function asks(call: Call, what: RegExp): boolean {
  return what.test(textOfCall(call))
}

function textOfCall(call: Call): string {
  const body = 'path' in call ? (inflated(call)?.toString('latin1') ?? '') : ''
  return JSON.stringify(call).replaceAll('\\"', '"') + body
}

/** Inflates the bytes that are sent; undefined if it cannot be inflated. */
function inflated({ headers = {}, base64 = '' }: RestCall): Buffer | undefined {
  const sent = Buffer.from(base64, 'base64')
  const { 'content-encoding': encoding } = headers
  try {
    if (encoding === 'gzip') return gunzipSync(sent)
    return encoding === 'deflate' ? inflateSync(sent) : sent
  } catch {
    return undefined
  }
}

const TENSOR = /(?:tensor|input|output) '?([^',:\n]*)'?/
const PARAMETER = /^(?:invalid value (?:type )?for|parameter keys starting with) '([^']*)'/

/** Which input, output or parameter of a request the text of an error is about. */
function subjectOf(text: string): string | undefined {
  const [, tensor] = /for tensor '([^']*)'/.exec(text) ?? []
  const [, subject] = PARAMETER.exec(text) ?? TENSOR.exec(text) ?? []
  return tensor ?? subject
}

/** Both texts are about parts of the request, and about different ones. */
function areOfTwoParts({ path, triton, tutti }: Difference, call: Call): boolean {
  const [theirs, ours] = [subjectOf(textOf(triton)), subjectOf(textOf(tutti))]
  if (!isText(path) || theirs === undefined || ours === undefined || theirs === ours) return false
  const asked = textOfCall(call)
  return asked.includes(`"${theirs}`) && asked.includes(`"${ours}`)
}

/** The body comes first, so that a client which still sends it sees the answer. */
function saysOfEncoding({ path, tutti }: Difference, call: Call): boolean {
  const isUnknown = asks(call, /"content-encoding":"(?!(gzip|deflate|identity)")/)
  return isUnknown && (path === 'status' ? tutti === 501 : tutti === 'Unsupported compression type')
}

/** A part of Triton's refusal with such a text, where Tutti answers or says something else. */
function isRefusedThere({ path, triton }: Difference, text: RegExp): boolean {
  if (isText(path)) return text.test(textOf(triton))
  if (/^(code|status)$/.test(path)) return triton !== 0 && triton !== 200
  return path.startsWith('headers') || triton === undefined
}

/** A part of Tutti's refusal with such a text, where Triton answers. */
function isRefusedHere({ path, triton, tutti }: Difference, text: RegExp): boolean {
  if (isText(path)) return triton === undefined && text.test(textOf(tutti))
  if (/^(code|status)$/.test(path)) return triton === 0 || triton === 200
  return path.startsWith('headers') || tutti === undefined
}

function isLoad(call: Call | undefined): boolean {
  return call !== undefined && /RepositoryModelLoad$|\/load$/.test(surfaceOf(call))
}

function isUnload(call: Call | undefined): boolean {
  return call !== undefined && /RepositoryModelUnload$|\/unload$/.test(surfaceOf(call))
}

/** By how much longer an answer is in which the parameters of the sequence stand once more. */
function lengthOfSequence(call: Call): number {
  const asked = textOfCall(call)
  const members = [
    ['sequence_id', /"sequence_id":(\d+)/, '0'],
    ['sequence_start', /"sequence_start":(true)/, 'false'],
    ['sequence_end', /"sequence_end":(true)/, 'false'],
  ] as const
  return members
    .map(([name, pattern, otherwise]) => `,"${name}":${pattern.exec(asked)?.[1] ?? otherwise}`)
    .join('').length
}

/** An index without the models that Triton does not list, because they have no version. */
function withoutVersionless(index: unknown): unknown {
  if (!Array.isArray(index)) return undefined
  return index.filter(({ version, reason }) => version !== undefined || !NO_VERSION.test(reason))
}

const NO_VERSION = /^(at least one version must be available under|unloaded$)/
const WITHOUT_EXECUTE = JSON.stringify('class TritonPythonModel:\n    pass').slice(1, -1)
const MALFORMED = /^failed to parse the request JSON buffer: /

/** Those of docs/compatibility.md that requests can show, those of the REST codec's README, and those of the comparison itself. */
export const ACCEPTED: readonly Accepted[] = [
  {
    name: 'server version',
    reason: 'it is the version of Tutti',
    fits: ({ path, surface }) =>
      path.endsWith('version') && /^(ServerMetadata|\w+ \/v2)$/.test(surface),
  },
  {
    name: 'content type without JSON',
    reason:
      'errors over HTTP are JSON and say so, and no body has no type: Triton says text/plain of some of both',
    fits: ({ path, tutti }) =>
      path === 'headers.content-type' && (tutti === 'application/json' || tutti === undefined),
  },
  {
    name: 'more said in an error',
    reason:
      'the words of Triton, and then what exactly is wrong: clients that look for the words find them',
    fits: ({ path, triton, tutti }) => {
      const short = textOf(triton).trimEnd().replace(/[.;]$/, '')
      return isText(path) && short.length > 8 && textOf(tutti).startsWith(short)
    },
  },
  {
    name: 'text that ends with a blank',
    reason:
      'clients of Node see no text that ends with a blank unless it is escaped, and Triton does not escape it',
    fits: ({ path, triton, tutti }) =>
      path === 'text' && triton === undefined && textOf(tutti).endsWith(' '),
  },
  {
    name: 'extents of a shape',
    reason: 'extents are from 0 to 2^53 - 1: no other tensor fits into a message',
    fits: (difference, call) =>
      saysOf(difference, /extent (out of range|that is too large)/) ||
      (difference.path === 'status' && asks(call, /"shape":\[[^\]]*\d{16,}/)),
  },
  {
    name: 'an extent below 0',
    reason: 'it is refused as such: Triton multiplies it and then finds the wrong number of bytes',
    fits: (difference, call) =>
      asks(call, /"shape":\[[^\]]*-\d/) && saysOf(difference, /All input dimensions should be/),
  },
  {
    name: 'a stream after an error',
    reason: 'an error is the last answer to a request: no further response may follow it',
    fits: ({ surface, triton, tutti, path }) =>
      surface === 'ModelStreamInfer' &&
      (JSON.stringify([triton, tutti])?.includes('too many') ||
        (path.endsWith('final_response_of_error.bool_param') && tutti === true)),
  },
  {
    name: 'an error that a model answers',
    reason: 'it counts as a failure in statistics and metrics, as in newer Tritons',
    fits: ({ surface, path, triton = 0, tutti = 0 }) =>
      surface === 'statistics and metrics' &&
      /faults|repeat/.test(path) &&
      (/fail/.test(path) ? Number(tutti) > Number(triton) : Number(tutti) < Number(triton)),
  },
  {
    name: 'binary_data_output and listed outputs',
    reason: 'an output that is listed follows it, too, as the binary data extension says',
    fits: ({ path }, call) =>
      asks(call, /"binary_data_output":true/) &&
      asks(call, /"outputs":\[/) &&
      /^(headers|json\.outputs|binary)/.test(path),
  },
  {
    name: 'messages that cannot be decoded',
    reason: 'they are INVALID_ARGUMENT, and the text says what is wrong; Triton says INTERNAL',
    fits: ({ path }, call) =>
      'rpc' in call &&
      (call.bytes !== undefined || call.requests.length === 0) &&
      /^(code|text)$/.test(path),
  },
  {
    name: 'syntax errors of JSON',
    reason: 'the first words and the status are those of Triton; the rest is another parser',
    fits: (difference) => saysOf(difference, MALFORMED, MALFORMED),
  },
  {
    name: 'index of refused models',
    reason:
      'a model whose configuration is refused, or which has no version, has state and reason: the log is not needed',
    fits: ({ surface, path, triton, tutti }) =>
      /index$/i.test(surface) &&
      (/\.(state|reason)$/.test(path)
        ? triton === undefined && tutti !== 'READY'
        : isDeepStrictEqual(triton, withoutVersionless(tutti))),
  },
  {
    name: 'a malformed body of an unload',
    reason: 'it is refused as for a load: the parameter unload_dependents must not get lost',
    fits: ({ path, surface, triton }) =>
      surface.endsWith('/unload') && /^(status|json|headers)/.test(path) && triton !== 404,
  },
  {
    name: 'an unknown parameter of an HTTP load',
    reason: 'it is a mistake of the client: 400 with the text of gRPC',
    fits: ({ path, surface }, call) =>
      surface.endsWith('/load') && asks(call, /"nope"/) && /^(status|json)/.test(path),
  },
  {
    name: 'integers out of range',
    reason: 'a wrong tensor is worse than an error: Triton keeps the low bytes',
    fits: (difference) => saysOf(difference, /out of range/),
  },
  {
    name: 'names with escapes in a path',
    reason: 'they are decoded, as a path of HTTP is',
    fits: ({ path, tutti, triton }, call) =>
      'path' in call &&
      call.path.includes('%') &&
      isText(path) &&
      /(unknown|requested) model/.test(textOf(tutti) + textOf(triton)),
  },
  {
    name: 'the first of several mistakes',
    reason:
      'parts of a request have no order, so any of those that are wrong may be told: an input, an output, a parameter, its encoding',
    fits: (difference, call) =>
      areOfTwoParts(difference, call) ||
      saysOfEncoding(difference, call) ||
      saysOf(difference, /data-type is '<invalid>'/, /expected \d+ inputs but got/) ||
      saysOf(difference, /attempt to access JSON non-/, /Number too big to be stored in double/),
  },
  {
    name: 'a body that is one tensor',
    reason: 'an error names the input of the model: Triton calls it raw_input',
    fits: (difference) => saysOf(difference, /for input '/, /for input 'raw_input'/),
  },
  {
    name: 'fields of newer configurations',
    reason: 'a configuration is told with all fields that Tutti knows, those of newer Tritons too',
    fits: ({ path, triton }) => path.endsWith('.max_inflight_requests') && triton === undefined,
  },
  {
    name: 'unknown datatypes over HTTP',
    reason: 'the error says which datatypes there are: Triton compares it with the model first',
    fits: (difference) =>
      saysOf(difference, /^invalid datatype for input /) &&
      subjectOf(textOf(difference.triton)) === subjectOf(textOf(difference.tutti)),
  },
  {
    name: 'integers with a fraction of 0',
    reason: 'JSON has one kind of number, so 1.0 is taken for 1 in shapes and integer tensors',
    fits: (difference, call) =>
      asks(call, /[[,]-?\d+(\.0+|e\d+)[,\]]/) &&
      isRefusedThere(difference, /attempt to access JSON non-(un)?signed-integer/),
  },
  {
    name: 'an empty batch',
    reason:
      'a batch of 0 items is answered with 0 items, beside another batch it is refused: Triton takes 0 for a batch that is not known',
    fits: (difference, call) =>
      asks(call, /"shape":\["?0"?,/) &&
      (isRefusedThere(
        difference,
        /input byte size mismatch for input |unexpected number of string elements /,
      ) ||
        isRefusedHere(difference, /batch size does not match other inputs/)),
  },
  {
    name: 'format of the log',
    reason: 'lines are JSON, which log collectors read, unless --log-format says otherwise',
    fits: ({ path, triton, tutti }) =>
      path.includes('log_format') && triton === 'default' && tutti === 'json',
  },
  {
    name: 'parameters of sequences that an ensemble answers',
    reason: 'they are written once: Triton writes the same members again for each of its steps',
    fits: ({ path, triton, tutti }, call) =>
      path === 'headers.inference-header-content-length' &&
      (Number(triton) - Number(tutti)) % lengthOfSequence(call) === 0,
  },
  {
    name: 'version of an empty last response',
    reason: 'it says which version answered: Triton repeats what the request said, often nothing',
    fits: ({ surface, path, triton, tutti }) =>
      surface === 'ModelStreamInfer' &&
      /^messages\.\d+\.infer_response\.model_version$/.test(path) &&
      (triton === undefined || Number.parseInt(textOf(triton), 10) === Number(tutti)),
  },
  {
    name: 'compressed bodies that are cut short',
    reason:
      'they are refused: Triton takes what it could inflate, and does not see that some is lost',
    fits: ({ path }, call) =>
      'path' in call &&
      inflated(call) === undefined &&
      /^(status|headers|json|binary|text)/.test(path),
  },
  {
    name: 'a model without execute',
    reason: 'it is refused when it is loaded: Triton loads it, and then refuses every request',
    fits: ({ path }, call, { files }) =>
      isLoad(call) &&
      /^(code|text|message|status|json|headers)/.test(path) &&
      JSON.stringify(files).includes(WITHOUT_EXECUTE),
  },
  {
    name: 'a model without inputs',
    reason:
      'a request without inputs reaches its code: Triton finds that an input with the index 0 is missing',
    fits: (difference) =>
      difference.surface.endsWith('nfer') &&
      isRefusedThere(difference, /out of bounds index 0: request has 0 inputs$/),
  },
  {
    name: 'an ensemble in a circle',
    reason: 'each load says that it is one: Triton says so once, and then that there is no version',
    fits: ({ triton, tutti, path }, call) =>
      isLoad(call) &&
      (path === 'code' || path === 'status'
        ? isDeepStrictEqual([triton, tutti], path === 'code' ? [13, 3] : [500, 400])
        : textOf(triton).endsWith('no version is available') &&
          /: circular dependency between ensembles: /.test(textOf(tutti))),
  },
  {
    name: 'a server that is ready again',
    reason: 'it is ready again when a model without versions is unloaded: Triton never is',
    fits: ({ surface, triton, tutti, call: at }, _call, { calls, files }) =>
      surface === 'ServerReady' &&
      triton === undefined &&
      tutti === true &&
      calls.slice(0, at).some(isUnload) &&
      (JSON.stringify(files).includes('version_policy') || !JSON.stringify(files).includes('/1/')),
  },
]

/** Those that are not on purpose. Nothing can be said of a model after a load or unload that only one of the servers does. */
export function unaccepted(test: Case, differences: readonly Difference[]): readonly Difference[] {
  const { calls } = test
  const parted = differences.find((difference) => {
    const call = calls[difference.call]
    const isControl = isLoad(call) || isUnload(call)
    return (
      isControl && /^(code|status)$/.test(difference.path) && nameOf(difference, test) !== undefined
    )
  })
  return differences.filter(
    (difference) =>
      nameOf(difference, test) === undefined &&
      (parted === undefined || difference.call <= parted.call),
  )
}

/** The name of the accepted difference that this one is, if it is one. */
export function nameOf(difference: Difference, test: Case): string | undefined {
  const call = test.calls[difference.call]
  return call && ACCEPTED.find(({ fits }) => fits(difference, call, test))?.name
}
