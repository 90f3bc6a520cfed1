import type { Clock } from '@tutti/chassis'
import { type Client, isNotFound, isUidMismatch, POD } from '@tutti/kube'
import { acceptedGate, areContainersReady, statusOf } from '../../pods/pod-state.ts'
import { FIELD_MANAGER } from '../../runtime/children.ts'
import { toTime } from '../../runtime/conditions.ts'
import { KeyedLimiter } from '../../runtime/keyed-limiter.ts'
import type { ModelMetrics } from './metrics.ts'
import { canServe, type ModelPod } from './model-pods.ts'
import type { ModelWorld } from './model-world.ts'
import { checkPod } from './routable-condition.ts'

export interface OpenGatesOptions {
  readonly client: Client
  readonly clock: Clock
  readonly metrics: ModelMetrics
  readonly signal: AbortSignal
}

/** Writes at the same time: a Model may have hundreds of pods, and its status waits for all of them. */
const AT_ONCE = 10

/**
 * Opens the Model's readiness gate of every pod whose versions are accepted and served by all ready routers. A gate stays open: a router
 * that starts later makes no pod unready.
 *
 * @throws KubeError
 */
export async function openGates(
  world: Pick<ModelWorld, 'model' | 'modelName' | 'accepted' | 'routers' | 'pods'>,
  o: OpenGatesOptions,
): Promise<void> {
  const gate = acceptedGate(world.model.metadata.name)
  const isDue = (pod: ModelPod): boolean =>
    isShut(pod, gate) && checkPod(world, pod).status === 'True'
  const limiter = new KeyedLimiter({ total: AT_ONCE })
  await Promise.all(
    world.pods.filter(isDue).map((pod) => limiter.run('', () => open(pod, gate, o))),
  )
}

function isShut(modelPod: ModelPod, gate: string): boolean {
  const { pod } = modelPod
  return areContainersReady(pod) && canServe(modelPod) && statusOf(pod, gate) !== 'True'
}

async function open({ pod }: ModelPod, type: string, o: OpenGatesOptions): Promise<void> {
  const { name, namespace = '', uid } = pod.metadata
  const condition = {
    type,
    status: 'True' as const,
    reason: 'Accepted',
    message: 'what it serves is accepted, and routers send requests there',
    lastTransitionTime: toTime(o.clock.epochMs()),
  }
  try {
    await o.client.applyStatus(
      POD,
      { metadata: { namespace, name, uid }, status: { conditions: [condition] } },
      // One for each gate: what a manager leaves out of an apply is taken away.
      { fieldManager: `${FIELD_MANAGER}/${type}`, signal: o.signal },
    )
    o.metrics.opened.add({})
  } catch (error) {
    // It went meanwhile.
    if (!isNotFound(error) && !isUidMismatch(error)) throw error
  }
}
