import type { Answer, Call, GrpcCall } from './case.ts'

/** Takes out of an answer what depends on the run: times, counts of earlier cases, paths, and orders that Triton does not promise. */
export function comparable(call: Call, answer: Answer, repository: string): Answer {
  const steps = [
    (value: unknown) => mapStrings(value, (text) => cleanText(text, repository)),
    isAboutStatistics(call) ? (value: unknown) => withoutNumbers(value, 'path' in call) : same,
    isAboutIndex(call) ? sortedIndex : same,
    sortedBinary,
    sortedOutputs,
    'rpc' in call && call.isUnordered === true ? (value: unknown) => grouped(call, value) : same,
    toldErrors,
  ]
  let value: unknown = answer
  for (const step of steps) value = step(value)
  return Object(value)
}

function same(value: unknown): unknown {
  return value
}

function isAboutStatistics(call: Call): boolean {
  return 'rpc' in call
    ? call.rpc === 'ModelStatistics'
    : 'path' in call && call.path.endsWith('/stats')
}

function isAboutIndex(call: Call): boolean {
  return 'rpc' in call
    ? call.rpc === 'RepositoryIndex'
    : 'path' in call && call.path.endsWith('/index')
}

function cleanText(text: string, repository: string): string {
  return (
    text
      .replaceAll(repository, 'REPOSITORY')
      // Frames of Python's own import, which Tutti leaves out, and of pb_utils.
      .replaceAll(
        / {2}(<frozen importlib|\S+(triton_python_backend_utils|model_config)\.py)[^\n]*\n/g,
        '',
      )
      // Where files of a load request were written.
      .replaceAll(/\S+\/(folder\w{6}|tutti-models-\w{6}\/\d+\/[^\s/]+)(?=\/)/g, 'LOADED')
      // The last folder is that of the backends.
      .replace(/(searched: '[^']*' '[^']*' )'[^']*'/, "$1'BACKEND'")
      .replace(/Got input\(s\) \[([^\]]*)\]/, (_all, list: string) => {
        return `Got input(s) [${list.split(',').toSorted().join(',')}]`
      })
  )
}

/** The flag of the last response has another name in a message of a stream that is an error. */
function toldErrors(value: unknown): unknown {
  return mapKeys(value, (key, item) => {
    if (key !== 'messages' || !Array.isArray(item)) return item
    return item.map((message) => {
      const isError = Boolean(Object(message).error_message)
      return isError
        ? renamed(message, 'triton_final_response', 'final_response_of_error')
        : message
    })
  })
}

function renamed(value: unknown, from: string, to: string): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, from, to))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key === from ? to : key, renamed(item, from, to)]),
  )
}

function mapStrings(value: unknown, change: (text: string) => string): unknown {
  return mapValues(value, (item) => (typeof item === 'string' ? change(item) : item))
}

/** Counts and times depend on what ran before, and lists of batches on it, too. A message of gRPC has no fields that are 0. */
function withoutNumbers(value: unknown, isKept: boolean): unknown {
  return mapKeys(value, (key, item) => {
    if (key === 'code' || key === 'status' || key === 'version') return item
    const isHistory = /^(batch_stats|response_stats|memory_usage)$/.test(key)
    if (!isHistory && !/^(integer )?\d+$/.test(String(item))) return item
    return isKept ? 'a number or list' : undefined
  })
}

function inOrder(list: readonly unknown[]): readonly unknown[] {
  return list.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

function sortedIndex(value: unknown): unknown {
  return mapKeys(value, (key, item) =>
    (key === 'models' || key === 'json') && Array.isArray(item) ? inOrder(item) : item,
  )
}

/** Outputs of ensembles, and inputs that a Python model reads, come in the order of a hash table. */
function sortedOutputs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedOutputs)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, item]) => [key, sortedOutputs(item)] as const)
  const message = Object.fromEntries(entries)
  const { outputs, raw_output_contents: raw } = message
  if (!Array.isArray(outputs) || !hasNoOrder(message)) return message
  const order = orderOf(outputs)
  return {
    ...message,
    outputs: order.map((at) => outputs[at]),
    ...(Array.isArray(raw) && { raw_output_contents: order.map((at) => raw[at]) }),
  }
}

/** The same for the bytes behind the JSON of an answer over HTTP. */
function sortedBinary(value: unknown): unknown {
  const { json, binary } = Object(value)
  const outputs: unknown = Object(json).outputs
  if (typeof binary !== 'string' || !Array.isArray(outputs) || !hasNoOrder(json)) return value
  const bytes = Buffer.from(binary, 'base64')
  const sizes = outputs.map((output) => Number(Object(output).parameters?.binary_data_size ?? 0))
  const parts = sizes.map((size, at) => {
    const start = sizes.slice(0, at).reduce((sum, before) => sum + before, 0)
    return bytes.subarray(start, start + size)
  })
  const sorted = Buffer.concat(orderOf(outputs).map((at) => parts[at] ?? Buffer.alloc(0)))
  return { ...Object(value), binary: sorted.toString('base64') }
}

function hasNoOrder(response: unknown): boolean {
  return /^(ens_|types$)/.test(String(Object(response).model_name))
}

/** The places of the outputs, by names. */
function orderOf(outputs: readonly unknown[]): readonly number[] {
  const rank = outputs.map((output, at) => ({ name: String(Object(output).name), at }))
  return rank.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(({ at }) => at)
}

function idOf(message: unknown): string {
  return String(Object(message).infer_response?.id)
}

/** Responses by request, without empty last ones and without the flag that says which is the last. */
function grouped(call: GrpcCall, value: unknown): unknown {
  if (call.requests.length === 0) return value
  return mapKeys(value, (key, item) => {
    if (key !== 'messages' || !Array.isArray(item)) return item
    const kept = item
      .map((message) => mapKeys(message, (k, v) => (k === 'triton_final_response' ? undefined : v)))
      .filter(
        (message) =>
          JSON.stringify(message).includes('outputs') ||
          JSON.stringify(message).includes('error_message'),
      )
    return kept.toSorted((a, b) => idOf(a).localeCompare(idOf(b)))
  })
}

function mapValues(value: unknown, change: (item: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => mapValues(item, change))
  if (typeof value !== 'object' || value === null) return change(value)
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, mapValues(item, change)]),
  )
}

/** Changes values by their keys, inner ones first; a key whose value becomes undefined is gone. */
function mapKeys(value: unknown, change: (key: string, item: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => mapKeys(item, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      const changed = change(key, mapKeys(item, change))
      return changed === undefined ? [] : [[key, changed]]
    }),
  )
}
