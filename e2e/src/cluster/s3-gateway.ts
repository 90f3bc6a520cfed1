import { createHash, createHmac } from 'node:crypto'
import type { PlainObject } from '@tutti/kube/testing'
import { until } from '../until.ts'
import { apply, getObject, kubectl } from './kubectl.ts'

const REGION = 'us-east-1'
const PORT = 7070
/** Of the only user. */
export const S3_KEYS = { id: 'tutti-test', secret: 'a-secret-of-the-test' } as const

/** A server of S3 in the cluster, over a volume that outlives its pod. */
export interface S3Gateway {
  /** As pods reach it, and this machine too. */
  readonly origin: string
  /** Makes a bucket. */
  createBucket(bucket: string): Promise<void>
  put(bucket: string, key: string, content: Uint8Array): Promise<void>
  /** Starts or ends its pod, and waits for it. */
  scale(replicas: 0 | 1): Promise<void>
}

/** Starts versitygw in a namespace. */
export async function startS3Gateway(namespace: string): Promise<S3Gateway> {
  const inSpace = `--namespace=${namespace}`
  await apply(...gatewayObjects(namespace))
  const rollout = ['rollout', 'status', 'deployment/s3', inSpace, '--timeout=300s']
  await kubectl(...rollout)
  const service = await getObject('service', 's3', inSpace)
  const origin = `http://${service['spec'].clusterIP}:${PORT}`
  // A Service leads to its pods a little after they are ready.
  await until('the gateway answers', () => fetch(origin).then(Boolean, () => false))
  return {
    origin,
    createBucket: (bucket) => signedPut(origin, `/${bucket}`, new Uint8Array()),
    put: (bucket, key, content) => signedPut(origin, `/${bucket}/${key}`, content),
    scale: async (replicas) => {
      await kubectl('scale', 'deployment/s3', `--replicas=${replicas}`, inSpace)
      if (replicas === 1) await kubectl(...rollout)
      else
        await kubectl(
          'wait',
          '--for=delete',
          'pods',
          '--selector=app=s3',
          inSpace,
          '--timeout=300s',
        )
    },
  }
}

function gatewayObjects(namespace: string): readonly PlainObject[] {
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
  return [
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata,
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod } },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: labels, ports: [{ port: PORT }] },
    },
  ]
}

/** By AWS's signature of version 4. @throws Error with what the server says. */
async function signedPut(origin: string, path: string, content: Uint8Array): Promise<void> {
  const { host } = new URL(origin)
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const signed = { host, 'x-amz-content-sha256': sha256(content), 'x-amz-date': time }
  const names = Object.keys(signed).join(';')
  const lines = Object.entries(signed).map(([name, value]) => `${name}:${value}`)
  const request = ['PUT', path, '', ...lines, '', names, sha256(content)].join('\n')
  const scope = [time.slice(0, 8), REGION, 's3', 'aws4_request']
  const text = ['AWS4-HMAC-SHA256', time, scope.join('/'), sha256(Buffer.from(request))].join('\n')
  const key = scope.reduce(
    (last: Buffer, part) => createHmac('sha256', last).update(part).digest(),
    Buffer.from(`AWS4${S3_KEYS.secret}`),
  )
  const signature = createHmac('sha256', key).update(text).digest('hex')
  const credential = `Credential=${S3_KEYS.id}/${scope.join('/')}`
  const authorization = `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=${names}, Signature=${signature}`
  const { host: _host, ...headers } = signed
  const response = await fetch(`${origin}${path}`, {
    method: 'PUT',
    headers: { ...headers, authorization },
    body: Buffer.from(content),
  })
  if (!response.ok) throw new Error(`PUT ${path}: ${response.status} ${await response.text()}`)
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
