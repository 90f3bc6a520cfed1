import type { ModelSpec } from '@tutti/ensemble'
import type { Container, Volume, VolumeMount } from '@tutti/kube'
import { ourContainer, secretVolume, TMP_MOUNT } from './serving-pod.ts'
import type { StepSettings } from './step-settings.ts'

/** Where the artifacts of a model come from. */
export type ArtifactSource =
  /** Fetched into the pod by an init container. */
  | { readonly kind: 'remote'; readonly uri: string }
  /** `path` is '' for the root of the claim. */
  | { readonly kind: 'claim'; readonly claim: string; readonly path: string }
  | { readonly kind: 'hostPath'; readonly path: string }

/** Every container sees the model's directory here. */
export const MODEL_DIRECTORY = '/models/model'
const MODELS = '/models'
const CREDENTIALS = '/var/run/tutti/credentials'
const VOLUME = 'model'

/** The init container; the failure of a fetch is found by it. */
export const FETCH = 'fetch'

/** @param uri - as the schema lets it in. */
export function parseArtifactSource(uri: string): ArtifactSource {
  const [, scheme, rest = ''] = /^([A-Za-z0-9]+):\/\/(.*)$/s.exec(uri) ?? []
  if (scheme === 'pvc') {
    const [claim = '', ...parts] = rest.split('/')
    return { kind: 'claim', claim, path: parts.filter((part) => part !== '').join('/') }
  }
  if (scheme === 'hostPath') return { kind: 'hostPath', path: rest }
  return { kind: 'remote', uri }
}

/** What a pod needs so that `main` finds the model. */
export interface ArtifactParts {
  readonly initContainers: readonly Container[]
  readonly volumes: readonly Volume[]
  /** Of `main`. */
  readonly mount: VolumeMount
}

/** Builds what brings the artifacts into a pod, and what checks their digest. */
export function buildArtifactParts(spec: ModelSpec, settings: StepSettings): ArtifactParts {
  const source = parseArtifactSource(spec.storageUri)
  if (source.kind === 'remote') return buildFetched(spec, source.uri, settings)
  const mount = toMount(source)
  const { digest } = spec.storage ?? {}
  const verify = ['fetch', '--verify', MODEL_DIRECTORY, '--digest', digest ?? '']
  return {
    initContainers:
      digest === undefined ? [] : [buildFetch({ spec, settings, args: verify, mounts: [mount] })],
    volumes: [toVolume(source)],
    mount,
  }
}

function buildFetched(spec: ModelSpec, uri: string, settings: StepSettings): ArtifactParts {
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
    initContainers: [buildFetch({ spec, settings, args, mounts })],
    volumes: [
      { name: VOLUME, emptyDir: {} },
      ...(secretRef === undefined ? [] : [secretVolume('credentials', secretRef.name)]),
    ],
    mount: { ...models, readOnly: true },
  }
}

function toVolume(source: Exclude<ArtifactSource, { kind: 'remote' }>): Volume {
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
  readonly spec: ModelSpec
  readonly settings: StepSettings
  readonly args: readonly string[]
  readonly mounts: readonly VolumeMount[]
}): Container {
  return {
    ...ourContainer(FETCH, o.settings, { command: 'tutti-step', args: o.args }),
    volumeMounts: [...o.mounts, TMP_MOUNT],
    ...toFetchResources(o.spec),
  }
}

/** Those of the container that serves, without its devices: a quota of the namespace wants some for every container. */
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
