import { Worker } from 'node:worker_threads'
import { ServeError } from '@tutti/errors'
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
 * The code of a built-in on a thread of its own, which takes one call at a time. A thread that ends by itself, or is ended because a call took
 * too long, fails the call that is open, and the next call starts another one.
 */
export class CodeThread implements OpenedCode {
  readonly #data: CodeThreadData
  readonly #maxCallMs: number
  #worker: Worker | undefined
  /** Settles the open call. */
  #settle: ((reply: CodeReply | Error) => void) | undefined

  private constructor(data: CodeThreadData, maxCallMs: number) {
    this.#data = data
    this.#maxCallMs = maxCallMs
  }

  /** Starts a thread and opens the code there. @throws ServeError of the code's `open`; ENGINE_STOPPED if the thread ends. */
  static async open(data: CodeThreadData, maxCallMs = MAX_CALL_MS): Promise<CodeThread> {
    const thread = new CodeThread(data, maxCallMs)
    await thread.#start()
    return thread
  }

  /** @throws ServeError of the code; ENGINE_STOPPED if the thread ends, ENGINE_FAILED if it was ended because it took too long. */
  async run(inputs: ReadonlyMap<string, TensorValue>): Promise<readonly NamedTensor[]> {
    if (this.#worker === undefined) await this.#start()
    const tensors = [...inputs].map(([name, tensor]) => ownTensor({ ...tensor, name }))
    const timer = setTimeout(() => this.#giveUp(), this.#maxCallMs)
    try {
      return await this.#call(() => this.#worker?.postMessage(tensors, handedOver(tensors)))
    } finally {
      clearTimeout(timer)
    }
  }

  /** Ends the thread. No call may be open. */
  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  #giveUp(): void {
    const text = `built-in ${this.#data.name}: a request took more than ${this.#maxCallMs} ms, and was ended`
    void this.#worker?.terminate()
    this.#worker = undefined
    this.#settle?.(new ServeError('ENGINE_FAILED', text))
  }

  async #start(): Promise<void> {
    await this.#call(() => {
      // No inherited flags: loaders of the host process have no business in the thread.
      const worker = new Worker(MODULE, { workerData: this.#data, execArgv: [] })
      // One that was given up has no further word.
      const settle = (reply: CodeReply | Error): void => {
        if (this.#worker === worker) this.#settle?.(reply)
      }
      worker.on('message', settle)
      worker.on('error', settle)
      worker.once('exit', () => {
        settle(new Error('its thread has ended'))
        if (this.#worker === worker) this.#worker = undefined
      })
      this.#worker = worker
    })
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
