import type { ServedModel, StepDescription } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { StepDirectory } from '@tutti/transport'
import { executing, type TestHandler } from '@tutti/transport/testing'
import type { Router } from '../router.ts'
import type { Revisions, StepQuestions } from '../view/step-members.ts'
import type { ReplicaExecutors } from './replica-executors.ts'
import { testRouter, toConfig } from './test-router.ts'

/** One model version of a scripted replica. */
export interface ScriptedVersion {
  readonly model: string
  readonly version?: number
  readonly revision: string
  /** config.pbtxt without the name. */
  readonly config: string
}

/** An envelope with the replica that got it. */
export interface Delivery {
  readonly replica: string
  readonly envelope: Envelope
}

/** The script of a replica for an envelope: it answers with its inputs as outputs, or fails. */
export type ReplicaScript = (delivery: Delivery) => Promise<void> | void

/** A router over replicas that a test adds, changes and takes away. */
export class ScriptedReplicas {
  readonly router: Router
  readonly directory: StepDirectory
  readonly deliveries: Delivery[] = []
  /** `replica model` -> whether the model itself is ready, from the next description on. */
  readonly readiness = new Map<string, boolean>()
  script: ReplicaScript = () => {}
  /** Name of the output of replicas. */
  output = 'Y'
  readonly #executors: ReplicaExecutors
  readonly #served = new Map<string, readonly ScriptedVersion[]>()

  constructor(o: Parameters<typeof testRouter>[0] = {}) {
    const { router, directory, replicas } = testRouter(o)
    this.router = router
    this.directory = directory
    this.#executors = replicas
  }

  /** The replica comes, or serves something else from now on; the router learns of it at once unless `quietly`. */
  serve(
    replica: string,
    versions: readonly ScriptedVersion[],
    o: { readonly quietly?: boolean } = {},
  ): void {
    this.#served.set(replica, versions)
    this.#executors.set(replica, executing(this.#answering(replica)))
    if (o.quietly !== true)
      this.router.view.describe(this.describe(replica), this.#control(replica))
  }

  /** Makes the replica respond no longer; the router learns of it unless `quietly`. */
  kill(replica: string, o: { readonly quietly?: boolean } = {}): void {
    this.#executors.delete(replica)
    if (o.quietly !== true) this.router.view.remove(replica)
  }

  /** Does what the transport does at a heartbeat. */
  heartbeat(replica: string, revisions: Revisions, o: { readonly draining?: boolean } = {}): void {
    const served = revisions.map(([model, version, revision]) => ({ model, version, revision }))
    this.directory.announce({ replica }, served)
    if (o.draining === true) this.directory.drain(replica)
    this.router.view.announce(replica, revisions)
  }

  describe(replica: string): StepDescription {
    const byModel = new Map<string, ServedModel>()
    for (const { model: name, version = 1, revision, config } of this.#served.get(replica) ?? []) {
      const known = byModel.get(name)
      const judgesReadiness = this.readiness.has(`${replica} ${name}`)
      const plain = { version, revision, state: 'READY' as const, reason: '' }
      const served = { ...plain, ...(judgesReadiness && { judgesReadiness }) }
      byModel.set(name, {
        name,
        config: toConfig(name, config),
        labels: {},
        versions: [...(known?.versions ?? []), served],
        reason: '',
      })
    }
    return { replica, models: [...byModel.values()] }
  }

  #control(replica: string): StepQuestions {
    return {
      statistics: async () => [],
      isReady: async (model) => {
        const isReady = this.readiness.get(`${replica} ${model}`)
        if (isReady === undefined)
          throw new ServeError('STEP_UNAVAILABLE', `${replica} does not answer`)
        return isReady
      },
    }
  }

  #answering(replica: string): TestHandler {
    return async (envelope, tensors, sink) => {
      const empty = { index: 0, final: true, outputs: [], parameters: new Map() }
      const served = this.#served
        .get(replica)
        ?.find((v) => v.model === envelope.model && (v.version ?? 1) === envelope.version)
      try {
        if (served?.revision !== envelope.revision) {
          throw new ServeError('REVISION_GONE', `${envelope.revision} is not served`)
        }
        const delivery = { replica, envelope }
        this.deliveries.push(delivery)
        await this.script(delivery)
        const outputs = envelope.inputs.map((input, i) => ({
          ...input,
          name: this.output,
          data: tensors[i]?.bytes ?? new Uint8Array(),
        }))
        sink.send({ ...empty, outputs })
      } catch (error) {
        sink.send({ ...empty, error: ServeError.from(error) })
      }
    }
  }
}
