import type { Clock, Logger } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import type { MemberQuestions } from '@tutti/transport'
import { describeFailed, stepAnnounced, stepRemoved } from '../log-events.ts'
import type { Router } from '../router.ts'
import type { Revisions } from '../step-members.ts'
import { StepWatch } from '../step-watch.ts'
import { DescriptionLimit } from './description-limit.ts'
import { describeStep, remoteStep } from './remote-step.ts'

/**
 * Between a router and the steps of the broker: what comes and goes there becomes questions, their answers become the router's
 * view.
 */
export class StepLink {
  readonly #router: Router
  readonly #log: Logger
  readonly #watch: StepWatch
  readonly #limit = new DescriptionLimit()

  constructor(o: {
    readonly router: Router
    /** Questions wait until the broker was joined. */
    readonly members: Promise<MemberQuestions>
    readonly clock: Clock
    readonly log: Logger
  }) {
    const { router, log } = o
    this.#router = router
    this.#log = log
    this.#watch = new StepWatch({
      clock: o.clock,
      describe: async (replica, limits) =>
        describeStep(await o.members, replica, { ...limits, limit: this.#limit }),
      described: (replica, description) =>
        router.stepDescribed(description, remoteStep(o.members, replica)),
      failed: (replica, error, delayMs) => describeFailed(log, replica, error, delayMs),
    })
  }

  /** True if every step that is there has been described. */
  get isSettled(): boolean {
    return this.#watch.isSettled
  }

  changed(replica: string, revisions: Revisions): void {
    stepAnnounced(this.#log, replica, revisions.length)
    this.#router.stepAnnounced(replica, revisions)
    this.#watch.changed(replica)
  }

  /** What is known of the replica is out of date. */
  refresh(replica: string): void {
    this.#watch.changed(replica)
  }

  gone(replica: string, error: ServeError): void {
    stepRemoved(this.#log, replica, error)
    this.#watch.gone(replica)
    this.#limit.remove(replica)
    this.#router.removeStep(replica)
  }

  close(): void {
    this.#watch.close()
  }
}
