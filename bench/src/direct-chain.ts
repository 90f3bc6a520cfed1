import { Worker } from 'node:worker_threads'

export interface ChainPlan {
  /** Paths of .onnx files with one input and one output each. */
  readonly modelFiles: readonly string[]
  readonly shape: readonly number[]
  /** Bytes of the first input, UINT8. */
  readonly data: Uint8Array
}

/** Models run one after the other on a thread, each on the output of the one before, without a server. */
export class DirectChain {
  readonly #thread: Worker

  private constructor(thread: Worker) {
    this.#thread = thread
  }

  /** Loads the models. */
  static async open(plan: ChainPlan): Promise<DirectChain> {
    const module = new URL('./direct-thread.js', import.meta.url)
    const chain = new DirectChain(new Worker(module, { workerData: plan }))
    await chain.#answer()
    return chain
  }

  /** @returns milliseconds that each model took, in order. */
  async run(): Promise<readonly number[]> {
    const answer = this.#answer()
    this.#thread.postMessage('run', [])
    return await answer
  }

  /** Ends the thread between two runs: ending a process during a run aborts it. */
  async close(): Promise<void> {
    const exited = new Promise((resolve) => this.#thread.once('exit', resolve))
    this.#thread.postMessage('stop', [])
    await exited
  }

  #answer(): Promise<readonly number[]> {
    return new Promise((resolve, reject) => {
      this.#thread.once('error', reject)
      this.#thread.once('message', (times: readonly number[]) => {
        this.#thread.off('error', reject)
        resolve(times)
      })
    })
  }
}
