import { Worker } from 'node:worker_threads'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { NamedTensor, TensorValue } from '@tutti/tensor'
import type { OpenedCode } from './code-step.ts'
import {
  type CodeReply,
  type CodeThreadData,
  fromSentError,
  handedOver,
  ownTensor,
} from './thread-messages.ts'

// The module is not imported, so its name is not rewritten when this one is compiled.
const MODULE = new URL(
  `./code-thread-main.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`,
  import.meta.url,
)

/** Milliseconds that one call may take. A regular expression of a tokenizer.json, for one, may take for ever over a text. */
const MAX_CALL_MS = 30_000
/**
 * Mebibytes of JavaScript's own memory, in which tokenizers are, and no tensors. V8 ends the process where one allocation is far beyond, so the
 * code of built-ins bounds what a request can make it take; this is for what no bound foresees.
 */
const MAX_HEAP_MIB = 2048
/** Least milliseconds that a call may go on after its caller left: most are over by then. */
const LEAST_GRACE_MS = 50

export interface CodeThreadLimits {
  /** Default 30,000. */
  readonly maxCallMs?: number
  /** Default 2,048. */
  readonly maxHeapMib?: number
}

/**
 * The code of a built-in on a thread of its own, which takes one call at a time. A thread that ends by itself, or is ended because a call took
 * too long or too much memory, or because its caller left, fails the call that is open, and the next call starts another one.
 */
export class CodeThread implements OpenedCode {
  readonly #data: CodeThreadData
  readonly #maxCallMs: number
  readonly #maxHeapMib: number
  #worker: Worker | undefined
  /** Milliseconds that the last start took. */
  #startMs = 0
  /** Settles the open call. */
  #settle: ((reply: CodeReply | Error) => void) | undefined

  private constructor(data: CodeThreadData, limits: CodeThreadLimits) {
    this.#data = data
    this.#maxCallMs = limits.maxCallMs ?? MAX_CALL_MS
    this.#maxHeapMib = limits.maxHeapMib ?? MAX_HEAP_MIB
  }

  /** Starts a thread and opens the code there. @throws ServeError of the code's `open`; ENGINE_STOPPED if the thread ends. */
  static async open(data: CodeThreadData, limits: CodeThreadLimits = {}): Promise<CodeThread> {
    const thread = new CodeThread(data, limits)
    await thread.#start()
    return thread
  }

  /**
   * @throws ServeError of the code; ENGINE_STOPPED if the thread ends, ENGINE_FAILED if it was ended because it took too long,
   * MESSAGE_TOO_LARGE if it took too much memory, CANCELLED if no caller waited for it.
   */
  async run(
    inputs: ReadonlyMap<string, TensorValue>,
    signal?: CancelSignal,
  ): Promise<readonly NamedTensor[]> {
    if (this.#worker === undefined) await this.#start()
    const tensors = [...inputs].map(([name, tensor]) => ownTensor({ ...tensor, name }))
    const timer = setTimeout(() => this.#end(this.#tookTooLong()), this.#maxCallMs)
    const stopWatching = this.#watch(signal)
    try {
      return await this.#call(() => this.#worker?.postMessage(tensors, handedOver(tensors)))
    } finally {
      clearTimeout(timer)
      stopWatching()
    }
  }

  /** Ends the thread. No call may be open. */
  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  /**
   * Ends the open call some time after its caller left: as much as a start of another thread takes, so that neither those who wait behind it
   * lose more than twice what they must, nor does a start cost more than it saves.
   */
  #watch(signal: CancelSignal | undefined): () => void {
    let timer: NodeJS.Timeout | undefined
    const giveUp = (): void => {
      const left = new ServeError('CANCELLED', 'no caller waits for the request')
      timer = setTimeout(() => this.#end(left), Math.max(this.#startMs, LEAST_GRACE_MS))
    }
    signal?.addEventListener('abort', giveUp, { once: true })
    if (signal?.aborted === true) giveUp()
    return () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', giveUp)
    }
  }

  #tookTooLong(): ServeError {
    const text = `built-in ${this.#data.name}: a request took more than ${this.#maxCallMs} ms, and was ended`
    return new ServeError('ENGINE_FAILED', text)
  }

  /** Ends the thread under the open call. */
  #end(error: ServeError): void {
    void this.#worker?.terminate()
    this.#worker = undefined
    this.#settle?.(error)
  }

  async #start(): Promise<void> {
    const begin = performance.now()
    await this.#call(() => {
      // No inherited flags: loaders of the host process have no business in the thread.
      const worker = new Worker(MODULE, {
        workerData: this.#data,
        execArgv: [],
        resourceLimits: { maxOldGenerationSizeMb: this.#maxHeapMib },
      })
      // One that was given up has no further word.
      const settle = (reply: CodeReply | Error): void => {
        if (this.#worker === worker) this.#settle?.(reply)
      }
      worker.on('message', settle)
      worker.on('error', (error) => settle(this.#toFailure(error)))
      worker.once('exit', () => {
        settle(new Error('its thread has ended'))
        if (this.#worker === worker) this.#worker = undefined
      })
      this.#worker = worker
    })
    this.#startMs = performance.now() - begin
  }

  /** The request does not fit this process, wherever it is sent: no retry helps. */
  #toFailure(error: Error): Error {
    if (!('code' in error) || error.code !== 'ERR_WORKER_OUT_OF_MEMORY') return error
    const text = `built-in ${this.#data.name}: a request took more than ${this.#maxHeapMib} MiB of memory, and was ended`
    return new ServeError('MESSAGE_TOO_LARGE', text, { cause: error })
  }

  /** Makes a call and waits for its reply. */
  async #call(make: () => void): Promise<readonly NamedTensor[]> {
    const reply = await new Promise<CodeReply | Error>((resolve) => {
      this.#settle = resolve
      make()
    })
    this.#settle = undefined
    if (reply instanceof ServeError) throw reply
    if (reply instanceof Error) {
      const text = `built-in ${this.#data.name}: ${reply.message}`
      throw new ServeError('ENGINE_STOPPED', text, { cause: reply })
    }
    if ('error' in reply) throw fromSentError(reply.error)
    return reply.outputs
  }
}
