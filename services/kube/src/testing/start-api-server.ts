import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onFreePort, type StartedProcess, startProcess, until } from '@tutti/chassis/testing'
import type { ClusterAccess } from '../transport/cluster-access.ts'
import type { ApiServerOptions } from './api-server.ts'
import { filesIn, kubeconfigText, writeServerFiles } from './api-server-files.ts'
import { apiServerFlags, controllerFlags } from './api-server-flags.ts'
import { findKubeBinaries } from './find-kube-binaries.ts'
import { type PlainClient, plainClient } from './plain-client.ts'
import { type Etcd, startEtcd } from './start-etcd.ts'

/**
 * Starts a real API server and waits until it is ready, some 4 s. Stop it in the test's teardown; it cannot outlive the test's
 * process.
 *
 * @throws Error if the programs are not there (see withoutKube) or do not start; the error has what they wrote.
 */
export async function startApiServer(o: ApiServerOptions = {}): Promise<ApiServer> {
  process.once('beforeExit', exitAtOnce)
  const bin = findKubeBinaries()
  if (bin === undefined) throw new Error('no programs of Kubernetes are found; see withoutKube')
  const folder = await mkdtemp(join(tmpdir(), 'tutti-kube-'))
  const server = new ApiServer(bin, folder, o)
  try {
    await server.start()
    return server
  } catch (error) {
    await server.stop()
    throw error
  }
}

/**
 * A process that comes to its end by itself closes what it has open and waits for it; Node 24.21 then may wait for ever, with a core
 * at 100 % (`CleanupHandles` in `uv_run`; seen in tests of watches and of faults). All tests have ended by then.
 */
function exitAtOnce(): void {
  process.exit()
}

/**
 * etcd and kube-apiserver of their own on loopback, with RBAC; several can run at once. Addresses of pods, nodes and Services
 * are loopback ones too: what a test sends to one never leaves the machine.
 */
export class ApiServer {
  /** PEM of the authority that signed the server's certificate. */
  ca = ''
  /** Path of the server's certificate, for a proxy in front of the server. */
  readonly certFile: string
  readonly keyFile: string
  /** Token of a user in system:masters. */
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
    const { cert, key } = filesIn(folder)
    this.certFile = cert
    this.keyFile = key
  }

  get url(): URL {
    return new URL(`https://127.0.0.1:${this.#port}`)
  }

  get plain(): PlainClient {
    if (this.#plain === undefined) throw new Error('the API server was never started')
    return this.#plain
  }

  async start(): Promise<void> {
    await writeServerFiles(this.#folder, { token: this.token, users: this.#options.users })
    this.ca = await readFile(filesIn(this.#folder).ca, 'utf8')
    this.#etcd = await startEtcd(this.#bin, this.#folder)
    this.#others.push(this.#etcd.process)
    await onFreePort(async (port) => {
      this.#port = port
      this.#plain?.close()
      this.#plain = plainClient({ url: this.url, ca: this.ca, token: this.token })
      await this.#startApiServer()
    })
    if (this.#options.hasControllers === true) await this.#startControllers()
  }

  access(token = this.token): ClusterAccess {
    const credentials = { authorization: `Bearer ${token}`, ca: this.ca }
    return {
      server: this.url,
      credentials: () => Promise.resolve(credentials),
      refresh: () => {},
    }
  }

  /** Writes a kubeconfig. @returns its path. */
  async kubeconfig(token = this.token): Promise<string> {
    const path = join(await this.#newFolder(), 'kubeconfig')
    await writeFile(path, kubeconfigText({ url: this.url, ca: this.ca, token }), { mode: 0o600 })
    return path
  }

  /** Gives a token of a service account that lasts a week. Makes the account and its namespace if they do not exist. */
  async createToken(namespace: string, serviceAccount: string): Promise<string> {
    const { plain } = this
    await plain.send('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } })
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts`
    await plain.send('POST', path, { body: { metadata: { name: serviceAccount } } })
    const { status } = await plain.create(`${path}/${serviceAccount}/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      // Nothing renews it, and a soak runs for a day.
      spec: { expirationSeconds: 7 * 24 * 3600 },
    })
    return String(status.token)
  }

  /** Writes a service account's folder as pods have it, for TUTTI_SERVICE_ACCOUNT_DIR. @returns the folder's path. */
  async createServiceAccountDir(namespace: string, serviceAccount: string): Promise<string> {
    const folder = await this.#newFolder()
    const token = await this.createToken(namespace, serviceAccount)
    await writeFile(join(folder, 'token'), token)
    await writeFile(join(folder, 'ca.crt'), this.ca)
    await writeFile(join(folder, 'namespace'), namespace)
    return folder
  }

  /** Kills the API server with SIGKILL; etcd and its data stay. */
  async kill(): Promise<void> {
    await this.#apiServer?.stop('SIGKILL')
  }

  /** Starts the API server again with the same data, after killing it if it runs; resolves when it is ready. */
  async restart(): Promise<void> {
    await this.kill()
    await this.#startApiServer()
  }

  /**
   * Makes etcd forget all earlier versions. Watches from these get 410 after a `restart`, which empties the server's own cache.
   */
  async compact(): Promise<void> {
    await this.#etcd?.compact()
  }

  /** Ends all processes and removes the data. It may be called again. */
  async stop(): Promise<void> {
    // All data is deleted, so no process needs to stop in order.
    this.#plain?.close()
    const ends = this.#others.toReversed().map((other) => other.stop('SIGKILL'))
    await Promise.all([...ends, this.kill()])
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }

  async #newFolder(): Promise<string> {
    this.#folders += 1
    const folder = join(this.#folder, `for-test-${this.#folders}`)
    await mkdir(folder)
    return folder
  }

  async #startApiServer(): Promise<void> {
    const flags = apiServerFlags(this.#folder, {
      ...this.#options,
      etcdUrl: this.#etcd?.url ?? '',
      port: this.#port,
    })
    const started = await startProcess(join(this.#bin, 'kube-apiserver'), flags, {
      cwd: this.#folder,
    })
    this.#apiServer = started
    let hasEnded = false
    const ended = started.exited.then(() => {
      hasEnded = true
      throw new Error(`kube-apiserver ended; it wrote:\n${started.lines.slice(-20).join('\n')}`)
    })
    // Once it is ready its end is no failure.
    ended.catch(() => {})
    const isReady = async (): Promise<boolean> => {
      const answer = await this.plain.send('GET', '/readyz').catch(() => undefined)
      return answer?.status === 200 || hasEnded
    }
    await Promise.race([until('kube-apiserver is ready', isReady), ended])
  }

  async #startControllers(): Promise<void> {
    const kubeconfig = await this.kubeconfig()
    const flags = controllerFlags(this.#folder, { ...this.#options, kubeconfig })
    const start = (name: string, args: readonly string[]): Promise<StartedProcess> =>
      startProcess(join(this.#bin, name), args, { cwd: this.#folder })
    this.#others.push(await start('kube-controller-manager', flags.manager))
    this.#others.push(await start('kube-scheduler', flags.scheduler))
  }
}
