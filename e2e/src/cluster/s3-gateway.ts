import { until } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import { AwsClient } from 'aws4fetch'
import { apply, getObject, kubectl } from './kubectl.ts'

const REGION = 'us-east-1'
const PORT = 7070
/** Keys of the only user. */
export const S3_KEYS = { id: 'tutti-test', secret: 'a-secret-of-the-test' } as const

/** Starts versitygw in a namespace: a server of S3 over a volume that outlives its pod. */
export async function startS3Gateway(namespace: string) {
  const inSpace = `--namespace=${namespace}`
  const { claim, serving } = gatewayObjects(namespace)
  await apply(claim)
  // The scheduler puts a pod whose claim is not bound aside, and may look at it again only after five minutes.
  const bound = ['--for=jsonpath={.status.phase}=Bound', '--timeout=120s']
  await kubectl('wait', 'persistentvolumeclaim/s3', inSpace, ...bound)
  await apply(...serving)
  const rollout = ['rollout', 'status', 'deployment/s3', inSpace, '--timeout=120s']
  const pods = ['pods', '--selector=app=s3', inSpace]
  await kubectl(...rollout)
  const service = await getObject('service', 's3', inSpace)
  const origin = `http://${service['spec'].clusterIP}:${PORT}`
  // A Service leads to its pods a little after they are ready.
  await until('the gateway answers', () => fetch(origin).then(Boolean, () => false))
  const client = new AwsClient({
    accessKeyId: S3_KEYS.id,
    secretAccessKey: S3_KEYS.secret,
    service: 's3',
    region: REGION,
  })
  const put = async (path: string, body: string | Uint8Array<ArrayBuffer>): Promise<void> => {
    const response = await client.fetch(`${origin}/${path}`, { method: 'PUT', body })
    if (!response.ok) throw new Error(`PUT ${path}: ${response.status} ${await response.text()}`)
  }
  return {
    /** As pods reach it, and this machine too. */
    origin,
    createBucket: (bucket: string) => put(bucket, ''),
    put: (bucket: string, key: string, content: Uint8Array) =>
      put(`${bucket}/${key}`, Buffer.from(content)),
    /** Starts or ends its pod, and waits for it. */
    scale: async (replicas: 0 | 1): Promise<void> => {
      await kubectl('scale', 'deployment/s3', `--replicas=${replicas}`, inSpace)
      if (replicas === 1) await kubectl(...rollout)
      else await kubectl('wait', '--for=delete', ...pods, '--timeout=300s')
    },
  }
}

/** The claim of its files, and what serves them. */
function gatewayObjects(namespace: string): {
  readonly claim: PlainObject
  readonly serving: readonly PlainObject[]
} {
  const metadata = { namespace, name: 's3' }
  const labels = { app: 's3' }
  const container = {
    name: 's3',
    image: 'localhost/versitygw:test',
    imagePullPolicy: 'Never',
    args: [
      `--port=:${PORT}`,
      `--access=${S3_KEYS.id}`,
      `--secret=${S3_KEYS.secret}`,
      `--region=${REGION}`,
      'posix',
      '/data',
    ],
    readinessProbe: { tcpSocket: { port: PORT }, periodSeconds: 1 },
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  }
  const pod = {
    terminationGracePeriodSeconds: 1,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [container],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 's3' } }],
  }
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata,
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata,
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod } },
  }
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { selector: labels, ports: [{ port: PORT }] },
  }
  return { claim, serving: [deployment, service] }
}
