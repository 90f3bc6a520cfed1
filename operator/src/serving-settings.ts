import { flagRefusal } from '@tutti/chassis'
import type { z } from 'zod'
import { parseSpec } from './controllers/read-spec.ts'
import { type NatsSettings, toNatsSettings } from './nats/nats-flags.ts'
import { NATS_SECRETS } from './nats/tenancy-secrets.ts'
import type { OperatorFlags } from './operator-flags.ts'
import { FetchEnv } from './resources/fetch-env.ts'
import { PodDefaults } from './resources/pod-defaults.ts'
import type { RouterDefaults } from './resources/router-deployment.ts'
import type {
  NodeCache,
  PodNatsSettings as PodAccess,
  StepPodSettings,
} from './resources/step-settings.ts'
import type { TelemetrySettings } from './resources/telemetry-env.ts'
import { readMeshPorts } from './workload-flags.ts'

/** Flags whose value is JSON, with the wanted kind. */
const JSON_FLAGS = {
  'step-defaults': 'an object',
  'router-defaults': 'an object',
  'fetch-env': 'a list',
} as const

/** Derives the settings of steps from the flags. @throws ServeError FLAG_INVALID for a flag about NATS. */
export function toStepPodSettings({
  flags,
  namespace,
}: {
  readonly flags: OperatorFlags
  /** Namespace of the operator. */
  readonly namespace: string
}): StepPodSettings {
  return {
    image: flags['step-image'],
    pythonImage: flags['step-python-image'],
    cudaImage: flags['step-cuda-image'],
    pythonCudaImage: flags['step-python-cuda-image'],
    imagePullPolicy: flags['step-image-pull-policy'],
    imagePullSecrets: flags['image-pull-secret'],
    hasAssignedUser: flags['namespace-assigns-user'],
    proxies: toProxies(flags),
    fetchEnv: readJsonFlag('fetch-env', FetchEnv, flags),
    podDefaults: readJsonFlag('step-defaults', PodDefaults, flags),
    cache: toCache(flags),
    hasImageVolumes: flags['image-volumes'],
    nats: toPodAccess(toNatsSettings(flags)),
    metricsConfig: flags['metrics-config'],
    telemetry: toTelemetry(flags),
    allowsHostAccess: flags['allow-host-access'],
    network: {
      isEnabled: flags['network-policies'],
      operatorNamespace: namespace,
      // As the chart labels its pods; operators of others have the first, too.
      operatorLabels: {
        'app.kubernetes.io/component': 'operator',
        'app.kubernetes.io/part-of': 'tutti',
      },
      meshPorts: readMeshPorts(flags['mesh-port']),
      scrapers: flags['scrape-namespace'].map((name) => ({
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
      })),
    },
  }
}

function toProxies(flags: OperatorFlags): StepPodSettings['proxies'] {
  const { 'http-proxy': http, 'https-proxy': https, 'no-proxy': none } = flags
  return {
    ...(http !== undefined && { HTTP_PROXY: http }),
    ...(https !== undefined && { HTTPS_PROXY: https }),
    ...(none !== undefined && { NO_PROXY: none }),
  }
}

function toCache(flags: OperatorFlags): NodeCache | undefined {
  const { 'cache-claim': claim, 'cache-host-path': path } = flags
  const common = { namespaces: flags['cache-namespace'], maxBytes: flags['cache-max-bytes'] }
  if (claim !== undefined) return { place: { kind: 'claim', claim }, ...common }
  return path === undefined ? undefined : { place: { kind: 'hostPath', path }, ...common }
}

function toTelemetry(flags: OperatorFlags): TelemetrySettings | undefined {
  const endpoint = flags['otlp-endpoint']
  if (endpoint === undefined) return undefined
  const headersSecret = flags['otlp-headers-secret']
  return { endpoint, sampleRatio: flags['otlp-sample-ratio'], headersSecret }
}

function toPodAccess({ urls, prefix, servers }: NatsSettings): PodAccess {
  const hasAuthorities = servers.kind === 'accounts' || servers.hasAuthorities
  return { servers: urls, prefix, secret: NATS_SECRETS.credentials, hasAuthorities }
}

/** Derives the settings of routers from the flags and the settings of steps. */
export function toRouterDefaults(flags: OperatorFlags, steps: StepPodSettings): RouterDefaults {
  const { nats, network, metricsConfig, telemetry, allowsHostAccess } = steps
  return {
    image: flags['router-image'],
    imagePullPolicy: flags['router-image-pull-policy'],
    imagePullSecrets: steps.imagePullSecrets,
    hasAssignedUser: steps.hasAssignedUser,
    podDefaults: readJsonFlag('router-defaults', PodDefaults, flags),
    allowsHostAccess,
    allowsImage: flags['allow-router-image'],
    replicas: flags['router-replicas'],
    console: flags['router-console'],
    nats,
    metricsConfig,
    telemetry,
    network,
  }
}

/** Reads what an installation adds to pods. @throws ServeError FLAG_INVALID that names what is wrong in the JSON. */
function readJsonFlag<T>(
  name: keyof typeof JSON_FLAGS,
  schema: z.ZodType<T>,
  { [name]: text }: OperatorFlags,
): T | undefined {
  if (text === undefined) return undefined
  const { spec, problem } = parseSpec(schema, toJson(name, text))
  if (problem !== undefined) throw flagRefusal(`--${name}`, problem)
  return spec
}

function toJson(name: keyof typeof JSON_FLAGS, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw flagRefusal(
      `--${name}`,
      `got what is no JSON (${String(error)}), want ${JSON_FLAGS[name]}`,
    )
  }
}
