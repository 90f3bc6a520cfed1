import { LineBudget, type Logger, limitLog } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { ModelHost } from '../engine.ts'
import type { CustomMetricsSession, MetricKind, MetricOperation } from '../model-metrics.ts'
import { badFrame, type InstanceFrame, OP } from './frames.ts'
import { noHost } from './host-calls.ts'
import { readNumber, readText } from './json-fields.ts'
import { type LineOrigin, MODEL_LINES } from './process-output.ts'
import { parseObject } from './wire-response.ts'

type Fields = Readonly<Record<string, unknown>>

export interface HostQuestionsOptions {
  readonly host: ModelHost | undefined
  readonly metrics: CustomMetricsSession
  readonly log: Logger
  readonly origin: LineOrigin
  /** Clock in monotonic milliseconds. */
  readonly now: () => number
}

/** The process that asks. */
interface Answering {
  reply(id: number, answer: unknown): void
}

const KINDS: Readonly<Record<string, MetricKind>> = {
  COUNTER: 'counter',
  GAUGE: 'gauge',
  HISTOGRAM: 'histogram',
}
/** Operations on metrics, in the order of their numbers in python/tutti_worker/frames.py. */
const OPERATIONS: readonly MetricOperation[] = ['increment', 'set', 'observe']
/** How long an unload has to be refused; after that it goes on by itself, as the model that asks may be in its way. */
const REFUSAL_MS = 100
const FILE_PREFIX = 'file:'

/** Questions and messages of one process other than tensors: model control, metrics and log lines. */
export class HostQuestions {
  readonly #options: HostQuestionsOptions
  readonly #budget: LineBudget
  /** Logger for what a model has the server do, with a limit. */
  readonly #limited: Logger
  readonly #ended = new AbortController()

  constructor(o: HostQuestionsOptions) {
    this.#options = o
    this.#budget = new LineBudget({ clock: o, ...MODEL_LINES })
    this.#limited = limitLog(o.log, { clock: o })
  }

  /** Takes a frame. @returns true if the frame was a question or message for here. @throws ServeError MALFORMED_MESSAGE */
  take(frame: InstanceFrame, process: Answering): boolean {
    if (frame.op === OP.METRIC) this.#metric(frame)
    else if (frame.op === OP.NOTE) this.#note(parseObject(frame.meta.toString()))
    else if (frame.op === OP.CALL) this.#call(frame, process)
    else return false
    return true
  }

  /** Aborts open questions and removes the metrics, since the process has ended. */
  close(): void {
    this.#ended.abort(new ServeError('CANCELLED', 'the model that asked has ended'))
    this.#options.metrics.close()
  }

  #note(note: Fields): void {
    const { metrics } = this.#options
    if (note['note'] === 'log') this.#log(note)
    else if (note['note'] === 'metric_remove') metrics.remove(readNumber(note, 'metric'))
    else if (note['note'] === 'metric_family_remove') metrics.remove(readNumber(note, 'family'))
    else throw badFrame(`a note of "${String(note['note'])}"`)
  }

  /** Applies an operation to a metric. The id is the metric's; the operation is a byte, the value a double. */
  #metric({ id, meta }: InstanceFrame): void {
    const operation = OPERATIONS[meta[0] ?? OPERATIONS.length]
    if (operation === undefined || meta.length !== 9) throw badFrame('a metric that is none')
    this.#options.metrics.update(id, operation, meta.readDoubleLE(1))
  }

  #log(note: Fields): void {
    const dropped = this.#budget.take()
    if (dropped === undefined) return
    const { log, origin } = this.#options
    const fields = {
      ...origin,
      text: readText(note, 'message'),
      at: `${readText(note, 'filename')}:${readNumber(note, 'line')}`,
      ...(dropped > 0 && { droppedLines: dropped }),
    }
    const level = readText(note, 'level')
    if (level === 'error') log.error('model log', fields)
    else if (level === 'warning') log.warn('model log', fields)
    else if (level === 'verbose') log.debug('model log', fields)
    else log.info('model log', fields)
  }

  #call(frame: InstanceFrame, process: Answering): void {
    const question = parseObject(frame.meta.toString())
    // A field that the question lacks is the library's fault, and refused at once.
    const answer = this.#answer(question, frame.payload)
    void answer.then(
      (value) => process.reply(frame.id, { value }),
      (error: unknown) => process.reply(frame.id, { error: ServeError.from(error).message }),
    )
  }

  async #answer(question: Fields, payload: Buffer): Promise<unknown> {
    const { metrics } = this.#options
    switch (question['call']) {
      case 'metric_family': {
        const kind = KINDS[readText(question, 'kind')]
        if (kind === undefined) throw badFrame(`metric kind "${String(question['kind'])}"`)
        return metrics.family(readText(question, 'name'), readText(question, 'description'), kind)
      }
      case 'metric':
        return metrics.metric(
          readNumber(question, 'family'),
          labelsOf(question),
          bucketsOf(question),
        )
      case 'metric_value':
        return String(metrics.value(readNumber(question, 'metric')))
      case 'is_model_ready':
        return await this.#isReady(question)
      case 'load_model':
        return await this.#load(question, payload)
      case 'unload_model':
        return await this.#unload(question)
      default:
        throw badFrame(`a call of "${String(question['call'])}"`)
    }
  }

  async #isReady(question: Fields): Promise<boolean> {
    const version = readText(question, 'version')
    // In a request -1 is the latest; here it is none, as in Triton.
    if (version.startsWith('-')) {
      const text = `failed to get model version from specified version string '${version}', version should be an integral value > 0`
      throw new ServeError('INVALID_VERSION', text)
    }
    const { signal } = this.#ended
    return await this.#host().isReady(readText(question, 'name'), version, { signal })
  }

  async #load(question: Fields, payload: Buffer): Promise<void> {
    await this.#host().load(readText(question, 'name'), {
      config: readText(question, 'config'),
      files: filesOf(question, payload),
      signal: this.#ended.signal,
    })
  }

  /** Resolves as soon as it is not refused: what is to be unloaded may wait for the model that asks. */
  async #unload(question: Fields): Promise<void> {
    const name = readText(question, 'name')
    const unloadDependents = question['unload_dependents'] === true
    const unloading = this.#host().unload(name, { unloadDependents, signal: this.#ended.signal })
    let timer: NodeJS.Timeout | undefined
    const later = new Promise<'later'>((resolve) => {
      timer = setTimeout(() => resolve('later'), REFUSAL_MS)
    })
    const first = await Promise.race([unloading, later])
    clearTimeout(timer)
    if (first !== 'later') return
    const { origin } = this.#options
    unloading.catch((error: unknown) => {
      this.#limited.warn('unload failed', {
        ...origin,
        unloaded: name,
        problem: ServeError.from(error).message,
      })
    })
  }

  #host(): ModelHost {
    if (this.#options.host === undefined) throw noHost()
    return this.#options.host
  }
}

function labelsOf(question: Fields): (readonly [string, string])[] {
  return Object.entries(Object(question['labels'])).map(([name, value]) => [name, String(value)])
}

function bucketsOf(question: Fields): number[] {
  const buckets = question['buckets']
  return Array.isArray(buckets) ? buckets.map(Number) : []
}

/** Contents by path below the model's directory; they follow each other in the payload. */
function filesOf(question: Fields, payload: Buffer): ReadonlyMap<string, Uint8Array> {
  const files = new Map<string, Uint8Array>()
  const sizes: unknown = question['files']
  let at = 0
  for (const entry of Array.isArray(sizes) ? sizes : []) {
    const [path, size]: readonly unknown[] = Array.isArray(entry) ? entry : []
    if (typeof path !== 'string' || typeof size !== 'number') throw badFrame('files without sizes')
    const name = path.startsWith(FILE_PREFIX) ? path.slice(FILE_PREFIX.length) : path
    files.set(name, payload.subarray(at, at + size))
    at += size
  }
  return files
}
