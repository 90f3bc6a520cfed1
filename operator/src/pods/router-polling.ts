import type { PodClient } from './pod-client.ts'
import type { RouterViews } from './router-views.ts'

/** Routers are asked by the process that leads, as long as it does. */
export class RouterPolling {
  readonly name = 'router-polling'
  readonly #routers: Pick<RouterViews, 'start' | 'close'>
  readonly #client: Pick<PodClient, 'close'>
  #closed: Promise<void> | undefined

  constructor(routers: Pick<RouterViews, 'start' | 'close'>, client: Pick<PodClient, 'close'>) {
    this.#routers = routers
    this.#client = client
  }

  start(): void {
    this.#routers.start()
  }

  /** Reconciles that go on may still ask. */
  stop(): void {}

  abort(): void {
    this.#closed ??= this.#routers.close().then(() => this.#client.close())
  }

  async drained(): Promise<void> {
    await this.#closed
  }
}
