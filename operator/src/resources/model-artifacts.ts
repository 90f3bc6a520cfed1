import { FETCH, type ModelSpec, VERIFY } from '@tutti/api'
import type { Container, Volume, VolumeMount } from '@tutti/kube'
import { type ArtifactSource, parseArtifactSource } from './artifact-source.ts'
import type { ModelFacts } from './model-facts.ts'
import { resourcesOfFetch } from './model-resources.ts'
import { ourContainer, secretVolume, TMP_MOUNT } from './serving-pod.ts'
import { PORTS, type StepPodSettings } from './step-settings.ts'

const MODELS = '/models'
/** Pattern of the paths of `modelDirectory`, without anchors. */
export const MODEL_DIRECTORY_PATTERN = `${MODELS}/[^/']+`
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

/** Returns the path of a model's directory in containers. Served names may have colons, which paths of mounts may not. */
export function modelDirectory(modelName: string): string {
  return `${MODELS}/${modelName.replaceAll(':', '%3A')}`
}

/** Builds the volumes and init containers that bring the artifacts into a pod and check their digest. */
export function buildArtifactParts({
  spec,
  settings,
  modelName,
}: Pick<ModelFacts, 'spec' | 'settings' | 'modelName'>): ArtifactParts {
  const directory = modelDirectory(modelName)
  const source = parseArtifactSource(spec.storageUri)
  if (source.kind === 'remote') return buildFetched(spec, { uri: source.uri, directory, settings })
  const mount = toMount(source, directory)
  const { digest } = spec.storage ?? {}
  const copy = source.kind === 'image' ? [buildCopy(spec, settings, source)] : []
  const name = copy.length > 0 ? VERIFY : FETCH
  const args = ['fetch', '--verify', directory, '--digest', digest ?? '']
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
  settings: StepPodSettings,
  { image, path }: Extract<ArtifactSource, { kind: 'image' }>,
): Container {
  const args = ['-RLf', `/${path}/.`, COPIED]
  return {
    ...ourContainer(FETCH, { image }, { command: 'cp', args }),
    volumeMounts: [{ name: VOLUME, mountPath: COPIED }],
    resources: resourcesOfFetch(spec, settings),
  }
}

function buildFetched(
  spec: ModelSpec,
  o: { readonly uri: string; readonly directory: string; readonly settings: StepPodSettings },
): ArtifactParts {
  const { uri, directory, settings } = o
  const { secretRef, digest } = spec.storage ?? {}
  const args = [
    'fetch',
    '--uri',
    uri,
    '--to',
    directory,
    // Where the step answers the operator later.
    '--progress-port',
    String(PORTS.metrics),
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

function toMount(
  source: Exclude<ArtifactSource, { kind: 'remote' }>,
  mountPath: string,
): VolumeMount {
  const hasPath = source.kind === 'claim' && source.path !== ''
  return {
    name: VOLUME,
    mountPath,
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
  const container = ourContainer(o.name, o.settings, { command: 'tutti-step', args: o.args })
  const proxies = Object.entries(o.settings.proxies).map(([name, value]) => ({ name, value }))
  return {
    ...container,
    env: [...(container.env ?? []), ...proxies],
    volumeMounts: [...o.mounts, TMP_MOUNT],
    resources: resourcesOfFetch(o.spec, o.settings),
  }
}
