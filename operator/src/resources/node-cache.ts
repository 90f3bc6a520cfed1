import { FETCH } from '@tutti/api'
import type { Container, PodSpec, Volume, VolumeMount } from '@tutti/kube'
import { parseArtifactSource } from './artifact-source.ts'
import { type PodGroup, partName } from './pod-group.ts'
import type { NodeCache } from './step-settings.ts'

const VOLUME = 'tutti-cache'
const DIRECTORY = '/var/cache/tutti'

type Cached = Pick<PodGroup, 'settings' | 'namespace'>

/** Builds the flags with which a fetch uses the cache; none if the namespace has none. */
export function cacheArgs(o: Cached): readonly string[] {
  const cache = cacheOf(o)
  if (cache === undefined) return []
  return ['--cache', DIRECTORY, '--cache-max-bytes', String(cache.maxBytes)]
}

/**
 * Gives the cache to the containers that fetch, and to no other one. This is done behind a user's template: the folder of a node
 * has those of all namespaces, and only the mount says which one a container sees.
 */
export function mountCache(spec: PodSpec, group: PodGroup): PodSpec {
  const cache = cacheOf(group)
  if (cache === undefined) return spec
  const mount = toMount(cache, group.namespace)
  const fetches = new Set(fetchesOf(group))
  const initContainers = listOf(spec.initContainers).map((one) =>
    fetches.has(one.name) ? withMount(withoutCache(one), mount) : withoutCache(one),
  )
  const hasFetch = initContainers.some(({ name }) => fetches.has(name))
  const volumes = listOf(spec.volumes).filter(({ name }) => name !== VOLUME)
  return {
    ...spec,
    ...(initContainers.length > 0 && { initContainers }),
    containers: listOf(spec.containers).map(withoutCache),
    volumes: hasFetch ? [...volumes, toVolume(cache)] : volumes,
  }
}

/** Names the containers that fetch. Others of these names copy from images, which are with the nodes. */
function fetchesOf(group: PodGroup): readonly string[] {
  const remote = group.models.filter(
    ({ spec }) => parseArtifactSource(spec.storageUri).kind === 'remote',
  )
  return remote.map((one) => partName(group, FETCH, one))
}

function cacheOf({ settings: { cache }, namespace }: Cached): NodeCache | undefined {
  const isEverywhere = cache?.namespaces.length === 0
  return isEverywhere || cache?.namespaces.includes(namespace) === true ? cache : undefined
}

/** Gives none for what a user's template has in place of a list: the API server refuses pods without containers. */
function listOf<T>(value: readonly T[] | undefined): readonly T[] {
  return Array.isArray(value) ? value : []
}

function toVolume({ place }: NodeCache): Volume {
  return place.kind === 'claim'
    ? { name: VOLUME, persistentVolumeClaim: { claimName: place.claim } }
    : { name: VOLUME, hostPath: { path: place.path, type: 'DirectoryOrCreate' } }
}

/** A claim is of one namespace. In the folder of a node the kubelet makes a folder of the namespace, with that folder's mode. */
function toMount({ place }: NodeCache, namespace: string): VolumeMount {
  const mount = { name: VOLUME, mountPath: DIRECTORY }
  return place.kind === 'claim' ? mount : { ...mount, subPath: namespace }
}

function withoutCache(container: Container): Container {
  const mounts = listOf(container.volumeMounts)
  if (!mounts.some(({ name }) => name === VOLUME)) return container
  return { ...container, volumeMounts: mounts.filter(({ name }) => name !== VOLUME) }
}

function withMount(container: Container, mount: VolumeMount): Container {
  return { ...container, volumeMounts: [...listOf(container.volumeMounts), mount] }
}
