import type { Container, PodSpec, Probe, Volume, VolumeMount } from '@tutti/kube'
import {
  NATS_CREDENTIALS,
  type PodNatsSettings,
  type PodSettings,
  type StepTransport,
} from './step-settings.ts'

/** The user and group of our images. */
const USER = 65_532
const SECRET_MODE = 0o440

interface ImageSettings {
  readonly image: string
  readonly imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never'
}

/** Builds the common part of all containers: the restricted security context and a home in `/tmp`. */
export function ourContainer(
  name: string,
  { image, imagePullPolicy }: ImageSettings,
  { command, args }: { readonly command: string; readonly args: readonly string[] },
): Container {
  return {
    name,
    image,
    ...(imagePullPolicy !== undefined && { imagePullPolicy }),
    command: [command],
    args,
    // Libraries that keep caches in the home would fail on a root that is read-only.
    env: [{ name: 'HOME', value: '/tmp' }],
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      readOnlyRootFilesystem: true,
    },
    terminationMessagePolicy: 'FallbackToLogsOnError',
  }
}

/** Builds the common part of the pods of steps and routers. */
export function ourPodSpec(o: {
  readonly serviceAccountName: string
  readonly hasToken: boolean
  readonly graceS: number
  readonly settings: PodSettings
  /** Labels that select the pods, to spread them over nodes and zones. */
  readonly labels: Readonly<Record<string, string>>
}): Omit<PodSpec, 'containers'> {
  const { imagePullSecrets, hasAssignedUser } = o.settings
  return {
    serviceAccountName: o.serviceAccountName,
    automountServiceAccountToken: o.hasToken,
    // Their variables, a few for each Service of the namespace, would make old and new pods differ.
    enableServiceLinks: false,
    terminationGracePeriodSeconds: o.graceS,
    securityContext: {
      runAsNonRoot: true,
      ...(!hasAssignedUser && { runAsUser: USER, runAsGroup: USER, fsGroup: USER }),
      seccompProfile: { type: 'RuntimeDefault' },
    },
    ...(imagePullSecrets.length > 0 && {
      imagePullSecrets: imagePullSecrets.map((name) => ({ name })),
    }),
    ...spreadPods(o.labels),
  }
}

export function secretVolume(name: string, secretName: string): Volume {
  return { name, secret: { secretName, defaultMode: SECRET_MODE } }
}

/** Builds the volume with the namespace's NATS credential. */
export function natsVolume({ secret }: PodNatsSettings): Volume {
  return secretVolume('nats', secret)
}

/** The mount of `natsVolume` in a container. */
export const NATS_MOUNT: VolumeMount = {
  name: 'nats',
  mountPath: NATS_CREDENTIALS.directory,
  readOnly: true,
}

export const TMP_VOLUME: Volume = { name: 'tmp', emptyDir: {} }
export const TMP_MOUNT: VolumeMount = { name: 'tmp', mountPath: '/tmp' }

/** Builds the flags with the NATS servers and the subject prefix. */
export function natsServerArgs({ servers, prefix }: PodNatsSettings): readonly string[] {
  return [...servers.flatMap((server) => ['--nats', server]), '--nats-prefix', prefix]
}

/** Builds the flags with the files of the NATS credential, as NATS_MOUNT has them. */
export function natsCredentialArgs({ hasAuthorities }: PodNatsSettings): readonly string[] {
  const { directory, credentials, authorities } = NATS_CREDENTIALS
  return [
    '--nats-creds-file',
    `${directory}/${credentials}`,
    ...(hasAuthorities ? ['--nats-tls-ca', `${directory}/${authorities}`] : []),
  ]
}

/** Builds the flag for a direct transport between routers and steps; no flag if all goes over NATS. */
export function directArgs(transport: StepTransport | undefined): readonly string[] {
  return transport === undefined ? [] : ['--direct', transport.toLowerCase()]
}

/** Builds the ports of a container, sorted by name. @param ports - numbers by name. */
export function containerPorts(
  ports: Readonly<Record<string, number>>,
): NonNullable<Container['ports']> {
  return Object.entries(ports)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, containerPort]) => ({ name, containerPort, protocol: 'TCP' }))
}

export function probe(path: string, o: Pick<Probe, 'periodSeconds' | 'failureThreshold'>): Probe {
  return { httpGet: { path, port: 'metrics' }, timeoutSeconds: 5, ...o }
}

/**
 * Pods of one template apart from each other: on different nodes, and in different zones where nodes have them, as far as
 * nodes have capacity. Zones are no second constraint: the scheduler leaves a node that lacks the label of one out of all of them.
 */
function spreadPods(
  matchLabels: Readonly<Record<string, string>>,
): Pick<PodSpec, 'affinity' | 'topologySpreadConstraints'> {
  const same = { labelSelector: { matchLabels }, matchLabelKeys: ['pod-template-hash'] }
  const elsewhere = { ...same, topologyKey: 'topology.kubernetes.io/zone' }
  return {
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 100, podAffinityTerm: elsewhere },
        ],
      },
    },
    topologySpreadConstraints: [
      {
        ...same,
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
      },
    ],
  }
}
