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

/**
 * The code of a built-in on a thread of its own, which takes one call at a time. A thread that ends by itself fails the call that is open,
 * and the next call starts another one.
 */
export class CodeThread implements OpenedCode {
  readonly #data: CodeThreadData
  #worker: Worker | undefined
  /** Settles the open call. */
  #settle: ((reply: CodeReply | Error) => void) | undefined

  private constructor(data: CodeThreadData) {
    this.#data = data
  }

  /** Starts a thread and opens the code there. @throws ServeError of the code's `open`; ENGINE_STOPPED if the thread ends. */
  static async open(data: CodeThreadData): Promise<CodeThread> {
    const thread = new CodeThread(data)
    await thread.#start()
    return thread
  }

  async run(inputs: ReadonlyMap<string, TensorValue>): Promise<readonly NamedTensor[]> {
    if (this.#worker === undefined) await this.#start()
    const tensors = [...inputs].map(([name, tensor]) => ownTensor({ ...tensor, name }))
    return await this.#call(() => this.#worker?.postMessage(tensors, handedOver(tensors)))
  }

  /** Ends the thread. No call may be open. */
  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  async #start(): Promise<void> {
    await this.#call(() => {
      // No inherited flags: loaders of the host process have no business in the thread.
      const worker = new Worker(MODULE, { workerData: this.#data, execArgv: [] })
      worker.on('message', (reply: CodeReply) => this.#settle?.(reply))
      worker.on('error', (error) => this.#settle?.(error))
      worker.once('exit', () => {
        if (this.#worker === worker) this.#worker = undefined
        this.#settle?.(new Error('its thread has ended'))
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
    if (reply instanceof Error) {
      const text = `built-in ${this.#data.name}: ${reply.message}`
      throw new ServeError('ENGINE_STOPPED', text, { cause: reply })
    }
    if ('error' in reply) throw fromSentError(reply.error)
    return reply.outputs
  }
}
