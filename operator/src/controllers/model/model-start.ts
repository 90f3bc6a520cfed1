import {
  isFetchContainer,
  isVerifyContainer,
  loadMessage,
  type ModelStart,
  type StartProgress,
} from '@tutti/api'
import {
  areContainersReady,
  type CachedContainer,
  isReady,
  mainStatusOf,
  type PodState,
} from '../../pods/pod-state.ts'
import { cutText } from '../../runtime/conditions.ts'
import { loadErrorOf } from './model-failure.ts'
import { currentPods, type ModelPod, readyVersionsOf } from './model-pods.ts'
import type { ModelWorld } from './model-world.ts'

type Wait = Omit<ModelStart, 'pod' | 'since'> & { readonly since: string | undefined }
type StartWorld = Pick<ModelWorld, 'pods' | 'modelName' | 'model' | 'host'>
type Check = (pod: ModelPod, world: StartWorld) => Wait | undefined

/** The waits of a pod, in the order of a start. */
const ORDER = ['Node', 'Image', 'Files', 'Load', 'Routers'] as const
const LONGEST_MESSAGE = 1024

/**
 * Finds how far the next pod of a Model is, by the pod of the newest template that is furthest of those that do not serve yet. Pure.
 *
 * It does not change with each byte: every change is a write to etcd that all who watch Models get. Bytes change ten times in a
 * fetch at most, and what a load waits for when that changes.
 */
export function findStart(world: StartWorld): ModelStart | undefined {
  const starts = currentPods(world.pods)
    .filter(({ pod }) => !isReady(pod))
    .map((pod) => startOf(pod, world))
  return starts.toSorted((one, other) => rankOf(other) - rankOf(one))[0]
}

function rankOf({ waitsFor }: ModelStart): number {
  return ORDER.indexOf(waitsFor)
}

function startOf(modelPod: ModelPod, world: StartWorld): ModelStart {
  const { name, creationTimestamp } = modelPod.pod.metadata
  const { since, message, ...wait } = waitOf(modelPod, world)
  const cut = cutText(message, LONGEST_MESSAGE)
  return { pod: name, ...wait, message: cut, since: since ?? creationTimestamp }
}

function waitOf(pod: ModelPod, world: StartWorld): Wait {
  for (const check of [ofNode, ofRouters, ofInit, ofMain]) {
    const wait = check(pod, world)
    if (wait !== undefined) return wait
  }
  return waitForImage(pod.pod, 'main', undefined)
}

const ofNode: Check = ({ pod }) => {
  if (pod.spec.nodeName !== undefined) return undefined
  const { message = '' } = conditionOf(pod, 'PodScheduled') ?? {}
  const since = pod.metadata.creationTimestamp
  return { waitsFor: 'Node', message: message === '' ? 'a node' : `a node: ${message}`, since }
}

const ofRouters: Check = ({ pod }) => {
  if (!areContainersReady(pod)) return undefined
  const since = conditionOf(pod, 'ContainersReady')?.lastTransitionTime
  return { waitsFor: 'Routers', message: 'routers, which take up what it serves', since }
}

const ofInit: Check = ({ pod, progress }, world) => {
  const inits = pod.status?.initContainerStatuses ?? []
  const next = inits.find(({ state }) => state?.terminated?.exitCode !== 0)
  if (next === undefined) return undefined
  const { name, state } = next
  if (state?.running === undefined) return waitForImage(pod, name, next)
  const since = state.running.startedAt
  const owner = findOtherOwner(name, world)
  const files = owner === undefined ? 'its files' : `the files of ${owner}`
  if (isVerifyContainer(name))
    return { waitsFor: 'Files', message: `the digest of ${files}`, since }
  if (!isFetchContainer(name)) {
    return { waitsFor: 'Files', message: `init container "${name}"`, since }
  }
  // The init containers of all Models of a pod run in turn, and the bytes are those of the one that runs.
  if (owner !== undefined) return { waitsFor: 'Files', message: files, since }
  return { waitsFor: 'Files', ...toFiles(progress?.transfer), since }
}

/** Finds the other Model, such as `"detect"`, whose files a container brings or checks; undefined if they are the Model's own. */
function findOtherOwner(container: string, { model, host }: StartWorld): string | undefined {
  const at = container.indexOf('-')
  if (at === -1) return host.isItself ? undefined : host.title
  const name = container.slice(at + 1)
  return name === model.metadata.name ? undefined : `"${name}"`
}

const ofMain: Check = ({ pod, model, progress }, { modelName }) => {
  const main = mainStatusOf(pod)
  const running = main?.state?.running
  if (running === undefined) return ofEnded(main) ?? waitForImage(pod, 'main', main)
  const doing = progress?.loads.find((load) => load.model === modelName)?.doing
  return { waitsFor: 'Load', message: toLoad(model, doing), since: running.startedAt }
}

function ofEnded(main: CachedContainer | undefined): Wait | undefined {
  const ended = main?.state?.terminated ?? main?.lastState?.terminated
  if (ended === undefined) return undefined
  const { reason = 'it ended' } = main?.state?.waiting ?? {}
  const message = `its load, whose process starts again (${reason})`
  return { waitsFor: 'Load', message, since: ended.finishedAt }
}

function toLoad(model: ModelPod['model'], doing: string | undefined): string {
  if (doing !== undefined) return loadMessage(doing)
  if (model === undefined) return 'its load'
  if (readyVersionsOf({ model }).length > 0) return 'its readiness probe'
  return loadErrorOf(model) === undefined ? 'its load' : 'its load, which has failed'
}

function waitForImage(pod: PodState, name: string, container: CachedContainer | undefined): Wait {
  const { reason = '' } = container?.state?.waiting ?? {}
  const isPlain = reason === '' || reason === 'ContainerCreating' || reason === 'PodInitializing'
  const message = `image and volumes of container "${name}"${isPlain ? '' : ` (${reason})`}`
  const ends = (pod.status?.initContainerStatuses ?? []).flatMap(
    ({ state }) => state?.terminated?.finishedAt ?? [],
  )
  const since = ends.at(-1) ?? conditionOf(pod, 'PodScheduled')?.lastTransitionTime
  return { waitsFor: 'Image', message, since }
}

function conditionOf(pod: PodState, type: string) {
  return pod.status?.conditions?.find((condition) => condition.type === type)
}

function toFiles(
  transfer: StartProgress['transfer'],
): Pick<Wait, 'message' | 'bytes' | 'totalBytes'> {
  if (transfer === undefined) return { message: 'its files' }
  const { totalBytes = 0 } = transfer
  if (totalBytes === 0) {
    // It doubles from one to the next.
    const bytes = transfer.bytes < 1 ? 0 : 2 ** Math.floor(Math.log2(transfer.bytes))
    return { message: `its files, more than ${formatBytes(bytes)}`, bytes }
  }
  const tenths = Math.min(10, Math.floor((transfer.bytes * 10) / totalBytes))
  const message = `its files, ${tenths * 10} % of ${formatBytes(totalBytes)}`
  return { message, bytes: Math.floor((totalBytes * tenths) / 10), totalBytes }
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3))
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${UNITS[power]}`
}
