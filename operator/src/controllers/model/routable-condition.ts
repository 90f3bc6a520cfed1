import type { RouterView } from '../../pods/router-views.ts'
import { type ConditionState, isFalse, isTrue, isUnknown } from '../condition-state.ts'
import { areRequestsHeld } from './asleep.ts'
import {
  canServe,
  currentPods,
  type ModelPod,
  readyVersionsOf,
  type VersionRevision,
} from './model-pods.ts'
import type { ModelWorld } from './model-world.ts'

type RoutableWorld = Pick<ModelWorld, 'modelName' | 'accepted' | 'routers' | 'trouble'>

/** Computes the condition Routable: whether all ready routers send requests to a pod of the newest template. */
export function checkRoutable(world: ModelWorld): ConditionState {
  const serving = currentPods(world.pods).filter(canServe)
  if (serving.length === 0 && areRequestsHeld(world)) return checkHeld(world)
  if (serving.length === 0) {
    return isFalse('NoReplica', 'no pod of the newest template has loaded the model')
  }
  const conditions = serving.map((pod) => checkPod(world, pod))
  const good = conditions.find(({ status }) => status === 'True')
  return good ?? conditions[0] ?? isUnknown('Pending', 'not asked yet')
}

/** Checks whether requests wait in all ready routers for a pod of what was accepted last. */
function checkHeld(world: ModelWorld): ConditionState {
  const [newest] = world.accepted
  const routed = checkRouters(world, newest === undefined ? [] : [newest])
  return routed.status === 'True' ? isTrue('Held', 'requests wait in routers for a pod') : routed
}

/** Checks whether requests may go to a pod: its versions are accepted, and all ready routers serve them. */
export function checkPod(world: RoutableWorld, pod: ModelPod): ConditionState {
  const versions = readyVersionsOf(pod)
  const name = pod.pod.metadata.name
  if (!versions.every((version) => isAccepted(world, version))) {
    return isFalse('NotAccepted', `pod "${name}": what it serves is not accepted`)
  }
  return checkRouters(world, versions)
}

function checkRouters(
  { routers, modelName, trouble }: RoutableWorld,
  versions: readonly VersionRevision[],
): ConditionState {
  if (routers.length === 0) {
    return trouble === undefined
      ? isFalse('NoRouters', 'no router of the namespace is ready')
      : isFalse(trouble.reason, trouble.message)
  }
  for (const router of routers) {
    if ('error' in router) {
      const { message } = router.error
      return isUnknown('RouterUnreachable', `router ${message}`)
    }
    const missing = versions.find((version) => !serves(router, modelName, version))
    if (missing === undefined) continue
    const what = `version ${missing.version} of '${modelName}', revision ${missing.revision.slice(0, 12)}`
    return isFalse('NotRouted', `router "${router.pod}" does not serve ${what} yet`)
  }
  return isTrue('Routed', `${routers.length === 1 ? 'the router serves' : 'all routers serve'} it`)
}

function isAccepted({ accepted }: RoutableWorld, wanted: VersionRevision): boolean {
  return accepted.some(
    ({ version, revision }) => version === wanted.version && revision === wanted.revision,
  )
}

function serves(
  { served }: Extract<RouterView, { readonly served: unknown }>,
  modelName: string,
  wanted: VersionRevision,
): boolean {
  const model = served.models.find(({ name }) => name === modelName)
  const version = model?.versions.find((one) => one.version === wanted.version)
  return version?.revisions.includes(wanted.revision) === true
}
