import { FETCH, type ModelSpec, VERIFY } from '@tutti/api'
import type { Container, Volume, VolumeMount } from '@tutti/kube'
import { type ArtifactSource, parseArtifactSource } from './artifact-source.ts'
import { ourContainer, secretVolume, TMP_MOUNT } from './serving-pod.ts'
import type { StepPodSettings } from './step-settings.ts'

/** The path of the model's directory in containers. */
export const MODEL_DIRECTORY = '/models/model'
const MODELS = '/models'
const CREDENTIALS = '/var/run/tutti/credentials'
/** Path at which the container of an image gets the volume. The image may have its model anywhere. */
const COPIED = '/var/run/tutti/model'
const VOLUME = 'model'

/** The parts of a pod that give `main` the model's files. */
export interface ArtifactParts {
  readonly initContainers: readonly Container[]
  readonly volumes: readonly Volume[]
  /** Mount of the model's volume in `main`. */
  readonly mount: VolumeMount
}

/** Builds the volumes and init containers that bring the artifacts into a pod and check their digest. */
export function buildArtifactParts(spec: ModelSpec, settings: StepPodSettings): ArtifactParts {
  const source = parseArtifactSource(spec.storageUri)
  if (source.kind === 'remote') return buildFetched(spec, source.uri, settings)
  const mount = toMount(source)
  const { digest } = spec.storage ?? {}
  const copy = source.kind === 'image' ? [buildCopy(spec, source)] : []
  const name = copy.length > 0 ? VERIFY : FETCH
  const args = ['fetch', '--verify', MODEL_DIRECTORY, '--digest', digest ?? '']
  const verify =
    digest === undefined ? [] : [buildFetch({ name, spec, settings, args, mounts: [mount] })]
  return { initContainers: [...copy, ...verify], volumes: [toVolume(source)], mount }
}

/**
 * Builds the init container that copies the model. It runs an image that is not ours, with that image's `cp` alone. After a node
 * restarts it runs again: it follows links, and replaces files that it may not write. Kubernetes decides by the tag when to pull.
 */
function buildCopy(
  spec: ModelSpec,
  { image, path }: Extract<ArtifactSource, { kind: 'image' }>,
): Container {
  const args = ['-RLf', `/${path}/.`, COPIED]
  return {
    ...ourContainer(FETCH, { image }, { command: 'cp', args }),
    volumeMounts: [{ name: VOLUME, mountPath: COPIED }],
    ...toFetchResources(spec),
  }
}

function buildFetched(spec: ModelSpec, uri: string, settings: StepPodSettings): ArtifactParts {
  const { secretRef, digest } = spec.storage ?? {}
  const args = [
    'fetch',
    '--uri',
    uri,
    '--to',
    MODEL_DIRECTORY,
    ...(digest === undefined ? [] : ['--digest', digest]),
    ...(secretRef === undefined ? [] : ['--secret-dir', CREDENTIALS]),
  ]
  const models = { name: VOLUME, mountPath: MODELS }
  const secret = { name: 'credentials', mountPath: CREDENTIALS, readOnly: true }
  const mounts = [models, ...(secretRef === undefined ? [] : [secret])]
  return {
    initContainers: [buildFetch({ name: FETCH, spec, settings, args, mounts })],
    volumes: [
      { name: VOLUME, emptyDir: {} },
      ...(secretRef === undefined ? [] : [secretVolume('credentials', secretRef.name)]),
    ],
    mount: { ...models, readOnly: true },
  }
}

function toVolume(source: Exclude<ArtifactSource, { kind: 'remote' }>): Volume {
  if (source.kind === 'image') return { name: VOLUME, emptyDir: {} }
  return source.kind === 'claim'
    ? { name: VOLUME, persistentVolumeClaim: { claimName: source.claim, readOnly: true } }
    : { name: VOLUME, hostPath: { path: source.path, type: 'Directory' } }
}

function toMount(source: Exclude<ArtifactSource, { kind: 'remote' }>): VolumeMount {
  const hasPath = source.kind === 'claim' && source.path !== ''
  return {
    name: VOLUME,
    mountPath: MODEL_DIRECTORY,
    readOnly: true,
    ...(hasPath && { subPath: source.path }),
  }
}

function buildFetch(o: {
  readonly name: string
  readonly spec: ModelSpec
  readonly settings: StepPodSettings
  readonly args: readonly string[]
  readonly mounts: readonly VolumeMount[]
}): Container {
  return {
    ...ourContainer(o.name, o.settings, { command: 'tutti-step', args: o.args }),
    volumeMounts: [...o.mounts, TMP_MOUNT],
    ...toFetchResources(o.spec),
  }
}

/**
 * Returns the resources of the serving container without its devices. A quota of the namespace may want resources of every
 * container.
 */
function toFetchResources({ resources }: ModelSpec): Pick<Container, 'resources'> {
  if (resources === undefined) return {}
  const { requests, limits } = resources
  return {
    resources: {
      ...(requests !== undefined && { requests: withoutDevices(requests) }),
      ...(limits !== undefined && { limits: withoutDevices(limits) }),
    },
  }
}

type Quantities = Readonly<Record<string, string | number>>

function withoutDevices(quantities: Quantities): Quantities {
  return Object.fromEntries(Object.entries(quantities).filter(([name]) => !name.includes('/')))
}
