import { FETCH, VERIFY } from '@tutti/api'
import type { Container, Volume, VolumeMount } from '@tutti/kube'
import { type ArtifactSource, parseArtifactSource } from './artifact-source.ts'
import type { FetchEnv } from './fetch-env.ts'
import type { ModelFacts } from './model-facts.ts'
import { resourcesOfFetch } from './model-resources.ts'
import { cacheArgs } from './node-cache.ts'
import { toPlain } from './plain.ts'
import { type PodGroup, partName } from './pod-group.ts'
import { ourContainer, secretVolume, TMP_MOUNT } from './serving-pod.ts'
import { PORTS } from './step-settings.ts'

const MODELS = '/models'
/** Pattern of the paths of `modelDirectory`, without anchors. */
export const MODEL_DIRECTORY_PATTERN = `${MODELS}/[^/']+`
const CREDENTIALS = '/var/run/tutti/credentials'
const CREDENTIALS_VOLUME = 'credentials'
/** Path at which the container of an image gets the volume. The image may have its model anywhere. */
const COPIED = '/var/run/tutti/model'
const VOLUME = 'model'

/** The parts of a pod that give `main` the files of a model. */
export interface ArtifactParts {
  readonly initContainers: readonly Container[]
  readonly volumes: readonly Volume[]
  /** Mount of the model's directory in `main`. */
  readonly mount: VolumeMount
}

/** A Model in its pods: what its parts are built from, and the names that they get there. */
interface Placed extends Pick<ModelFacts, 'spec' | 'settings' | 'namespace'> {
  readonly directory: string
  readonly nameOf: (part: string) => string
}

/** Returns the path of a model's directory in containers. Served names may have colons, which paths of mounts may not. */
export function modelDirectory(modelName: string): string {
  return `${MODELS}/${modelName.replaceAll(':', '%3A')}`
}

/** Builds the volumes and init containers that bring a Model's artifacts into the pods of a group and check their digest. */
export function buildArtifactParts(group: PodGroup, facts: ModelFacts): ArtifactParts {
  const { spec, settings, namespace, modelName } = facts
  const nameOf = (part: string): string => partName(group, part, facts)
  const placed = { spec, settings, namespace, directory: modelDirectory(modelName), nameOf }
  const source = parseArtifactSource(spec.storageUri)
  return source.kind === 'remote' ? buildFetched(placed, source.uri) : buildMounted(placed, source)
}

type Mounted = Exclude<ArtifactSource, { kind: 'remote' }>

function buildMounted(placed: Placed, source: Mounted): ArtifactParts {
  const { directory, nameOf } = placed
  const volume = nameOf(VOLUME)
  const { hasImageVolumes = false } = placed.settings
  const isCopied = source.kind === 'image' && !hasImageVolumes
  const mount = toMount(source, { name: volume, mountPath: directory, isCopied })
  const { digest } = placed.spec.storage ?? {}
  const copy = isCopied ? [buildCopy(placed, source)] : []
  const name = nameOf(copy.length > 0 ? VERIFY : FETCH)
  const args = ['fetch', '--verify', directory, '--digest', digest ?? '']
  const verify = digest === undefined ? [] : [buildFetch(placed, { name, args, mounts: [mount] })]
  return {
    initContainers: [...copy, ...verify],
    volumes: [toVolume(volume, source, isCopied)],
    mount,
  }
}

/**
 * Builds the init container that copies the model. It runs an image that is not ours, with that image's `cp` alone. After a node
 * restarts it runs again: it follows links, and replaces files that it may not write. Kubernetes decides by the tag when to pull.
 */
function buildCopy(
  { spec, settings, nameOf }: Placed,
  { image, path }: Extract<ArtifactSource, { kind: 'image' }>,
): Container {
  const args = ['-RLf', `/${path}/.`, COPIED]
  return {
    ...ourContainer(nameOf(FETCH), { image }, { command: 'cp', args }),
    volumeMounts: [{ name: nameOf(VOLUME), mountPath: COPIED }],
    resources: resourcesOfFetch(spec, settings),
  }
}

function buildFetched(placed: Placed, uri: string): ArtifactParts {
  const { spec, directory, nameOf } = placed
  const { secretRef, digest } = spec.storage ?? {}
  const { fetchEnv = [] } = placed.settings
  const args = [
    'fetch',
    '--uri',
    uri,
    '--to',
    directory,
    // Where the step answers the operator later.
    '--progress-port',
    String(PORTS.metrics),
    ...cacheArgs(placed),
    ...(digest === undefined ? [] : ['--digest', digest]),
    ...(secretRef === undefined ? [] : ['--secret-dir', CREDENTIALS]),
  ]
  const models = { name: nameOf(VOLUME), mountPath: MODELS }
  const credentials = nameOf(CREDENTIALS_VOLUME)
  const secret = { name: credentials, mountPath: CREDENTIALS, readOnly: true }
  const mounts = [models, ...(secretRef === undefined ? [] : [secret])]
  return {
    initContainers: [buildFetch(placed, { name: nameOf(FETCH), args, mounts, env: fetchEnv })],
    volumes: [
      { name: models.name, emptyDir: {} },
      ...(secretRef === undefined ? [] : [secretVolume(credentials, secretRef.name)]),
    ],
    // Only its own directory: those of other models of the pod are mounted beside it.
    mount: {
      name: models.name,
      mountPath: directory,
      readOnly: true,
      subPath: directory.slice(MODELS.length + 1),
    },
  }
}

function toVolume(name: string, source: Mounted, isCopied: boolean): Volume {
  if (isCopied) return { name, emptyDir: {} }
  // As for containers, the tag decides when to pull.
  if (source.kind === 'image') return { name, image: { reference: source.image } }
  return source.kind === 'claim'
    ? { name, persistentVolumeClaim: { claimName: source.claim, readOnly: true } }
    : { name, hostPath: { path: source.path, type: 'Directory' } }
}

function toMount(
  source: Mounted,
  { isCopied, ...at }: Pick<VolumeMount, 'name' | 'mountPath'> & { readonly isCopied: boolean },
): VolumeMount {
  const hasPath = source.kind !== 'hostPath' && !isCopied && source.path !== ''
  return { ...at, readOnly: true, ...(hasPath && { subPath: source.path }) }
}

function buildFetch(
  { spec, settings }: Placed,
  o: {
    readonly name: string
    readonly args: readonly string[]
    readonly mounts: readonly VolumeMount[]
    /** Variables beside the proxies. */
    readonly env?: FetchEnv
  },
): Container {
  const container = ourContainer(o.name, settings, { command: 'tutti-step', args: o.args })
  const proxies = Object.entries(settings.proxies).map(([name, value]) => ({ name, value }))
  return {
    ...container,
    env: [...(container.env ?? []), ...proxies, ...toPlain(o.env ?? [])],
    volumeMounts: [...o.mounts, TMP_MOUNT],
    resources: resourcesOfFetch(spec, settings),
  }
}

/**
 * Lets Models of one pod share the volume of a claim: a pod with two volumes of one claim never starts, as the kubelet waits for the second
 * one for ever.
 */
export function shareClaims(all: readonly ArtifactParts[]): readonly ArtifactParts[] {
  const names = new Map<string, string>()
  const known = new Map<string, string>()
  for (const { name, persistentVolumeClaim } of all.flatMap(({ volumes }) => volumes)) {
    if (persistentVolumeClaim === undefined) continue
    const first = known.get(persistentVolumeClaim.claimName) ?? name
    known.set(persistentVolumeClaim.claimName, first)
    names.set(name, first)
  }
  const rename = (mount: VolumeMount): VolumeMount => ({
    ...mount,
    name: names.get(mount.name) ?? mount.name,
  })
  return all.map(({ initContainers, volumes, mount }) => ({
    initContainers: initContainers.map((container) => ({
      ...container,
      ...(container.volumeMounts && { volumeMounts: container.volumeMounts.map(rename) }),
    })),
    volumes: volumes.filter(({ name }) => (names.get(name) ?? name) === name),
    mount: rename(mount),
  }))
}
