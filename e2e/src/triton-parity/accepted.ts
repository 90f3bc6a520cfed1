import { isDeepStrictEqual } from 'node:util'
import { gunzipSync, inflateSync } from 'node:zlib'
import type { Call, Case, RestCall } from './case.ts'
import type { Difference } from './compare.ts'

/** A difference on purpose: a user of Triton would accept it for its reason. */
export interface Accepted {
  readonly name: string
  readonly reason: string
  readonly fits: (difference: Difference, call: Call) => boolean
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

function isCut({ headers = {}, base64 = '' }: RestCall): boolean {
  const { 'content-encoding': encoding = '' } = headers
  try {
    if (encoding === 'gzip') gunzipSync(Buffer.from(base64, 'base64'))
    if (encoding === 'deflate') inflateSync(Buffer.from(base64, 'base64'))
    return false
  } catch {
    return true
  }
}

/** Whether the calls' text has something. */
function asks(call: Call, what: RegExp): boolean {
  const body = 'base64' in call ? Buffer.from(call.base64 ?? '', 'base64').toString('latin1') : ''
  return what.test(JSON.stringify(call).replaceAll('\\"', '"') + body)
}

/** An index without the models that Triton does not list, because they have no version. */
function withoutVersionless(index: unknown): unknown {
  if (!Array.isArray(index)) return undefined
  return index.filter(({ version, reason }) => version !== undefined || !NO_VERSION.test(reason))
}

const NO_VERSION = /^(at least one version must be available under|unloaded$)/
/** Texts about one of the parameters of a request. */
const BY_KEY = /^(invalid value (type )?for '|parameter keys starting with)/
const BY_INPUT = /input '\w+' batch size does not match/
/** Texts about the name or the datatype of an input or output. */
const BY_DATATYPE = /data-type is '|receiving \w+ data via JSON is not supported/
const BY_NAME = /unexpected inference output '|already exists in request|invalid value type for '/
const BY_SIZE = /input byte size mismatch for input '\w+'/
const SEQUENCE_MEMBERS = ',"sequence_id":0,"sequence_start":false,"sequence_end":false'
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
      asks(call, /"shape":\[[^\]]*\d{16,}/) ||
      saysOf(difference, /extent (out of range|that is too large)/),
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
        path.endsWith('triton_final_response.bool_param')),
  },
  {
    name: 'an error that a model answers',
    reason: 'it counts as a failure in statistics and metrics, as in newer Tritons',
    fits: ({ surface, path }, call) =>
      surface === 'statistics and metrics' && 'counts' in call && /faults|repeat/.test(path),
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
    reason: 'parameters and inputs have no order, so any of those that are wrong may be told',
    fits: (difference) =>
      saysOf(difference, BY_KEY, BY_KEY) ||
      saysOf(difference, BY_INPUT, BY_INPUT) ||
      saysOf(difference, BY_SIZE, BY_SIZE) ||
      saysOf(difference, BY_DATATYPE, BY_NAME),
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
    fits: (difference) => saysOf(difference, /^invalid datatype for input /),
  },
  {
    name: 'integers with a fraction of 0',
    reason: 'JSON has one kind of number, so 1.0 is taken for 1 in shapes and integer tensors',
    fits: ({ path }, call) =>
      asks(call, /[[,]-?\d+(\.0+|e\d+)[,\]]/) && /^(status|headers|json|text)/.test(path),
  },
  {
    name: 'an empty batch',
    reason:
      'a batch of 0 items is answered with 0 items: Triton takes 0 for a batch that is not known',
    fits: ({ path }, call) =>
      asks(call, /"shape":\["?0"?,/) && /^(code|status|text|message|json|headers)/.test(path),
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
    fits: ({ path, triton, tutti }) =>
      path === 'headers.inference-header-content-length' &&
      (Number(triton) - Number(tutti)) % SEQUENCE_MEMBERS.length === 0,
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
      'path' in call && isCut(call) && /^(status|headers|json|binary|text)/.test(path),
  },
]

/** Those that are not on purpose. */
export function unaccepted(
  { calls }: Case,
  differences: readonly Difference[],
): readonly Difference[] {
  return differences.filter((difference) => nameOf(difference, calls) === undefined)
}

/** The name of the accepted difference that this one is, if it is one. */
export function nameOf(difference: Difference, calls: Case['calls']): string | undefined {
  const call = calls[difference.call]
  return call && ACCEPTED.find(({ fits }) => fits(difference, call))?.name
}
