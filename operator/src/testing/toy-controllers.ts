import type { Stored } from '@tutti/kube'
import type { ControllerContext, ControllerSet } from '../controllers/context.ts'
import { Applier, type SyncResult, throwIfFailed } from '../runtime/apply.ts'
import { toConditions, toTime } from '../runtime/conditions.ts'
import { Controller, type Result } from '../runtime/controller.ts'
import { inNamespaces } from '../runtime/in-namespaces.ts'
import { untilOwnerMoves } from '../runtime/owner-check.ts'
import { childSource, ownSource } from '../runtime/sources.ts'
import { StatusWriter } from '../runtime/status.ts'
import { toyCaches } from './cluster-rig.ts'
import { TOY, type Toy, toyChildren } from './toy.ts'

/** Makes a small controller of toys, which uses all parts of the runtime as a real controller does. */
export function createToyControllers(context: ControllerContext): ControllerSet {
  const { client, clock, metrics, log, events } = context
  const namespaces = context.flags['watch-namespace']
  const openReflector = inNamespaces(context.openReflector, namespaces)
  const { toys, ...children } = toyCaches({ openReflector })
  const caches = Object.values(children)
  const applier = new Applier({ client, caches, metrics })
  const statuses = new StatusWriter({ client, metrics })

  const reconcile = async ({ signal }: { signal: AbortSignal }, key: string): Promise<Result> => {
    const toy = toys.get(key)
    if (toy === undefined) {
      applier.forget(key)
      statuses.forget(key)
      return {}
    }
    holdLoop(toy.spec.holdMs)
    return await untilOwnerMoves(() => look(toy, signal))
  }

  const look = async (toy: Stored<Toy>, signal: AbortSignal): Promise<Result> => {
    const result = await applier.sync({ resource: TOY, object: toy }, toyChildren(toy), { signal })
    const { isReady, message } = check(result)
    if (!isReady) {
      const [reason, action] = ['Conflict', 'Apply']
      events.record({ regarding: toy, type: 'Warning', reason, action, note: message })
    }
    const { generation: observedGeneration = 0 } = toy.metadata
    const status = isReady ? 'True' : 'False'
    const reason = isReady ? 'Applied' : 'Conflict'
    const conditions = toConditions(['Ready'], {
      states: { Ready: { status, reason, message } },
      before: statuses.current(toy)?.conditions,
      observedGeneration,
      at: toTime(clock.epochMs()),
    })
    const write = { resource: TOY, object: toy, status: { observedGeneration, conditions } }
    await statuses.write(write, { signal })
    throwIfFailed(result)
    return isReady ? {} : { requeueAfterMs: 500 }
  }

  const sources = [
    ownSource(toys),
    childSource(children.configMaps, TOY),
    childSource(children.deployments, TOY),
    childSource(children.services, TOY),
  ]
  const controller = new Controller({ name: 'toy', sources, reconcile, clock, log, metrics })
  return { caches: [toys, ...caches], controllers: [controller] }
}

function holdLoop(ms = 0): void {
  if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

function check({ outcomes }: SyncResult): { readonly isReady: boolean; readonly message: string } {
  for (const outcome of outcomes) {
    if (outcome.result === 'nameConflict') return { isReady: false, message: outcome.message }
  }
  return { isReady: true, message: 'all is there' }
}
