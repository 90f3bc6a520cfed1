import { ServeError } from '@tutti/errors'
import type { OpenStepEndpointOptions, RouterCalls, StepEndpoint } from '@tutti/transport'

/** A step's way to the broker that a test drives. Records what it is called for. */
export class ScriptedStepEndpoint implements StepEndpoint {
  isConnected = true
  readonly transport = {
    broker: { isUp: true, connects: 1, sentBytes: { control: 0, data: 0 } },
    members: new Map(),
    foreign: 0,
    direct: undefined,
  }
  /** Beside the broker. */
  obstaclesBeside: readonly string[] = []
  readonly events: string[]
  /** Where the models' calls go; nowhere unless a test says where. */
  routers: RouterCalls = {
    executor: () => ({ execute: (_, sink) => sink.fail(noRouter(), 'no') }),
    ask: () => Promise.reject(noRouter()),
  }
  /** Ends the drain; resolved by the test. */
  readonly drained = Promise.withResolvers<void>()

  #options: OpenStepEndpointOptions | undefined

  /** @param events - may be shared with what else notes its order. */
  constructor(events: string[] = []) {
    this.events = events
  }

  get obstacles(): readonly string[] {
    return [...(this.isConnected ? [] : ['the broker is not connected']), ...this.obstaclesBeside]
  }

  /** To be given as `openEndpoint`. */
  readonly open = (options: OpenStepEndpointOptions): Promise<StepEndpoint> => {
    this.#options = options
    this.events.push('joined')
    return Promise.resolve(this)
  }

  /** The options that the step joined with. */
  get options(): OpenStepEndpointOptions {
    if (this.#options === undefined) throw new Error('the step has not joined')
    return this.#options
  }

  /** The answers of routers; there are none unless a test says so. */
  askRouters: StepEndpoint['askRouters'] = async () => []

  async drain(): Promise<void> {
    this.events.push('draining')
    await this.drained.promise
    this.events.push('drained')
  }

  async close(): Promise<void> {
    this.events.push('left')
  }
}

function noRouter(): ServeError {
  return new ServeError('STEP_UNAVAILABLE', 'no router is there')
}
