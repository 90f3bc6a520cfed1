import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTestCertificates, type StartedProcess, startProcess } from '@tutti/chassis/testing'
import type { ClusterAccess } from '../transport/cluster-access.ts'
import type { ApiServer, ApiServerOptions } from './api-server.ts'
import { findKubeBinaries } from './find-kube-binaries.ts'
import { onFreePort } from './on-free-port.ts'
import { type PlainClient, plainClient } from './plain-client.ts'
import { startPretendedNodes } from './pretended-nodes.ts'
import { type Etcd, startEtcd } from './start-etcd.ts'

const READY_MS = 120_000
const POLL_MS = 50

/**
 * Starts a real API server and waits until it is ready, some 4 s. Stop it in the test's teardown; it cannot outlive the test's
 * process.
 *
 * @throws Error if the programs are not there (see withoutKube) or do not start; the error has what they wrote.
 */
export async function startApiServer(o: ApiServerOptions = {}): Promise<ApiServer> {
  const bin = findKubeBinaries()
  if (bin === undefined) throw new Error('no programs of Kubernetes are found; see withoutKube')
  const folder = await mkdtemp(join(tmpdir(), 'tutti-kube-'))
  const server = new LaunchedApiServer(bin, folder, o)
  try {
    await server.start()
    return server
  } catch (error) {
    await server.stop()
    throw error
  }
}

class LaunchedApiServer implements ApiServer {
  ca = ''
  readonly caFile: string
  readonly certFile: string
  readonly keyFile: string
  readonly token = randomBytes(16).toString('hex')
  readonly #bin: string
  readonly #folder: string
  readonly #options: ApiServerOptions
  readonly #others: StartedProcess[] = []
  #etcd: Etcd | undefined
  #port = 0
  #plain: PlainClient | undefined
  #apiServer: StartedProcess | undefined
  #folders = 0

  constructor(bin: string, folder: string, o: ApiServerOptions) {
    this.#bin = bin
    this.#folder = folder
    this.#options = o
    this.caFile = join(folder, 'ca.pem')
    this.certFile = join(folder, 'server.pem')
    this.keyFile = join(folder, 'server.key')
  }

  get url(): URL {
    return new URL(`https://127.0.0.1:${this.#port}`)
  }

  get plain(): PlainClient {
    if (this.#plain === undefined) throw new Error('the API server was never started')
    return this.#plain
  }

  get lines(): readonly string[] {
    return this.#running().lines
  }

  async start(): Promise<void> {
    await this.#writeFiles()
    this.#etcd = await startEtcd(this.#bin, this.#folder)
    this.#others.push(this.#etcd.process)
    await onFreePort(async (port) => {
      this.#port = port
      this.#plain?.close()
      this.#plain = plainClient({ url: this.url, ca: this.ca, token: this.token })
      await this.#startApiServer()
    })
    const { kwokNodes = 0, hasControllers = kwokNodes > 0 } = this.#options
    if (hasControllers) await this.#startControllers()
    if (kwokNodes > 0) {
      this.#others.push(
        await startPretendedNodes({
          bin: this.#bin,
          kubeconfig: await this.kubeconfig(),
          client: this.plain,
          count: kwokNodes,
        }),
      )
    }
  }

  access(token = this.token): ClusterAccess {
    const credentials = { authorization: `Bearer ${token}`, ca: this.ca }
    return {
      server: this.url,
      credentials: () => Promise.resolve(credentials),
      refresh: () => {},
    }
  }

  async kubeconfig(token = this.token): Promise<string> {
    const path = join(await this.#newFolder(), 'kubeconfig')
    await writeFile(path, kubeconfigText({ url: this.url, ca: this.ca, token }), { mode: 0o600 })
    return path
  }

  async createToken(namespace: string, serviceAccount: string): Promise<string> {
    const { plain } = this
    await plain.send('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } })
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts`
    await plain.send('POST', path, { body: { metadata: { name: serviceAccount } } })
    const { status } = await plain.create(`${path}/${serviceAccount}/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 3600 },
    })
    return String(status.token)
  }

  async createServiceAccountDir(namespace: string, serviceAccount: string): Promise<string> {
    const folder = await this.#newFolder()
    const token = await this.createToken(namespace, serviceAccount)
    await writeFile(join(folder, 'token'), token)
    await writeFile(join(folder, 'ca.crt'), this.ca)
    await writeFile(join(folder, 'namespace'), namespace)
    return folder
  }

  async kill(): Promise<void> {
    await this.#apiServer?.stop('SIGKILL')
  }

  async restart(): Promise<void> {
    await this.kill()
    await this.#startApiServer()
  }

  pause(): void {
    this.#running().kill('SIGSTOP')
  }

  resume(): void {
    this.#running().kill('SIGCONT')
  }

  async compact(): Promise<void> {
    await this.#etcd?.compact()
  }

  async stop(): Promise<void> {
    // One that is paused takes no other signal. All data goes: nobody needs to end in order.
    this.#apiServer?.kill('SIGCONT')
    this.#plain?.close()
    const ends = this.#others.toReversed().map((other) => other.stop('SIGKILL'))
    await Promise.all([...ends, this.kill()])
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }

  #running(): StartedProcess {
    if (this.#apiServer === undefined) throw new Error('the API server was never started')
    return this.#apiServer
  }

  /** False once it has ended: nobody needs to ask any more. */
  #isRunning(started: StartedProcess): boolean {
    try {
      process.kill(started.pid, 0)
      return true
    } catch {
      // ESRCH.
      return false
    }
  }

  async #newFolder(): Promise<string> {
    this.#folders += 1
    const folder = join(this.#folder, `for-test-${this.#folders}`)
    await mkdir(folder)
    return folder
  }

  async #writeFiles(): Promise<void> {
    await createTestCertificates(this.#folder)
    this.ca = await readFile(this.caFile, 'utf8')
    const { privateKey, publicKey } = generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'sec1', format: 'pem' },
    })
    await writeFile(join(this.#folder, 'sa.key'), privateKey)
    await writeFile(join(this.#folder, 'sa.pub'), publicKey)
    const admin = { token: this.token, user: 'admin', groups: ['system:masters'] }
    const lines = [admin, ...(this.#options.users ?? [])].map(({ token, user, groups = [] }) => {
      return `${token},${user},${user},"${groups.join(',')}"\n`
    })
    await writeFile(join(this.#folder, 'tokens.csv'), lines.join(''))
  }

  async #startApiServer(): Promise<void> {
    const started = await startProcess(join(this.#bin, 'kube-apiserver'), this.#apiServerFlags(), {
      cwd: this.#folder,
    })
    this.#apiServer = started
    const ended = started.exited.then(() => {
      throw new Error(`kube-apiserver ended; it wrote:\n${started.lines.slice(-20).join('\n')}`)
    })
    // Once it is ready its end is no failure.
    ended.catch(() => {})
    await Promise.race([this.#untilReady(started), ended])
  }

  /** Nothing tells when it is ready: it is asked. */
  async #untilReady(started: StartedProcess): Promise<void> {
    const deadline = performance.now() + READY_MS
    for (;;) {
      const isReady = await this.plain.send('GET', '/readyz').then(
        ({ status }) => status === 200,
        () => false,
      )
      if (isReady || !this.#isRunning(started)) return
      if (performance.now() > deadline) {
        throw new Error(`kube-apiserver was not ready after ${READY_MS} ms`)
      }
      await sleep(POLL_MS)
    }
  }

  #apiServerFlags(): string[] {
    const file = (name: string): string => join(this.#folder, name)
    const { hasControllers, kwokNodes = 0, flags = [] } = this.#options
    return [
      `--etcd-servers=${this.#etcd?.url}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${this.#port}`,
      // A loopback address may be no endpoint of the Service `kubernetes`.
      '--advertise-address=127.0.0.1',
      '--endpoint-reconciler-type=none',
      `--cert-dir=${this.#folder}`,
      `--tls-cert-file=${this.certFile}`,
      `--tls-private-key-file=${this.keyFile}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${file('sa.pub')}`,
      `--service-account-signing-key-file=${file('sa.key')}`,
      '--authorization-mode=RBAC',
      `--token-auth-file=${file('tokens.csv')}`,
      `--service-cluster-ip-range=${SERVICE_RANGE}`,
      '--allow-privileged=true',
      // Without controllers a namespace gets no service account, and pods without one would be refused.
      ...(hasControllers === true || kwokNodes > 0
        ? []
        : ['--disable-admission-plugins=ServiceAccount']),
      ...flags,
    ]
  }

  async #startControllers(): Promise<void> {
    const kubeconfig = await this.kubeconfig()
    const common = [
      `--kubeconfig=${kubeconfig}`,
      '--leader-elect=false',
      '--secure-port=0',
      // For a cluster that others use too they are slow on purpose: some twenty requests a second.
      '--kube-api-qps=1000',
      '--kube-api-burst=1000',
    ]
    const controllers = [
      ...common,
      `--service-account-private-key-file=${join(this.#folder, 'sa.key')}`,
      `--root-ca-file=${this.caFile}`,
      '--horizontal-pod-autoscaler-sync-period=2s',
      ...(this.#options.controllerFlags ?? []),
    ]
    const start = (name: string, args: readonly string[]): Promise<StartedProcess> =>
      startProcess(join(this.#bin, name), args, { cwd: this.#folder })
    this.#others.push(await start('kube-controller-manager', controllers))
    this.#others.push(await start('kube-scheduler', common))
  }
}

/** Loopback, as the addresses of pretended pods and nodes. */
const SERVICE_RANGE = '127.96.0.0/16'

function kubeconfigText(o: { url: URL; ca: string; token: string }): string {
  // JSON is YAML.
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'test',
        cluster: {
          server: o.url.origin,
          'certificate-authority-data': Buffer.from(o.ca).toString('base64'),
        },
      },
    ],
    users: [{ name: 'test', user: { token: o.token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  })
}
