import type { PlainObject } from '@tutti/kube/testing'
import { getObject } from './kubectl.ts'

/** What programs/node/probe of e2e/cluster listens on. */
const HTTP_PORT = 8080
const GRPC_PORT = 50051
/** How Traefik learns that a Service speaks gRPC; for an Ingress it does not go by the port's appProtocol. */
const H2C = { 'traefik.ingress.kubernetes.io/service.serversscheme': 'h2c' }

/** A Deployment of pods that tell what they see of the cluster, and two Services before it: `NAME` (HTTP), `NAME-grpc`. */
export function probeObjects(
  namespace: string,
  name: string,
  o: { readonly replicas?: number; readonly container?: object; readonly pod?: object } = {},
): PlainObject[] {
  const labels = { app: name }
  const service = (suffix: string, port: object, annotations = {}): PlainObject => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name: `${name}${suffix}`, annotations },
    spec: { selector: labels, ports: [port] },
  })
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace, name },
      spec: {
        replicas: o.replicas ?? 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { ...probePod(o.container), ...o.pod } },
      },
    },
    service('', { name: 'http', port: 80, targetPort: HTTP_PORT }),
    service('-grpc', { name: 'grpc', port: GRPC_PORT }, H2C),
  ]
}

function probePod(container: object = {}): object {
  return {
    terminationGracePeriodSeconds: 1,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'probe',
        image: 'localhost/probe:test',
        imagePullPolicy: 'Never',
        ports: [{ containerPort: HTTP_PORT }, { containerPort: GRPC_PORT }],
        readinessProbe: { grpc: { port: GRPC_PORT }, periodSeconds: 1, timeoutSeconds: 5 },
        livenessProbe: { grpc: { port: GRPC_PORT }, timeoutSeconds: 5 },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        ...container,
      },
    ],
  }
}

/** The pods of a Deployment of probes. */
export async function probePods(namespace: string, name: string): Promise<PlainObject[]> {
  const list = await getObject('pods', `--namespace=${namespace}`, `--selector=app=${name}`)
  return list['items']
}

/**
 * Asks a probe.
 *
 * @param pod - or an address.
 * @throws Error with what it said if it could not do it.
 */
export async function askProbe(
  pod: PlainObject | string,
  what: 'hostname' | 'environment' | 'lookup' | 'get' | 'dial' | 'append' | 'burn',
  of = '',
): Promise<string> {
  const address = typeof pod === 'string' ? pod : `${pod['status'].podIP}:${HTTP_PORT}`
  const response = await fetch(`http://${address}/${what}?of=${encodeURIComponent(of)}`)
  const answer = (await response.text()).trim()
  if (!response.ok) throw new Error(answer)
  return answer
}
