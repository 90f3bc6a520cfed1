import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import { hostPort } from '../process/addresses.ts'
import { findNatsServer } from './find-nats-server.ts'
import { onFreePort } from './free-port.ts'
import { type StartedProcess, startProcess } from './start-process.ts'
import type { TestCertificates } from './test-certificates.ts'

export interface NatsServerOptions {
  /** Default: one that is free. */
  readonly port?: number
  /** Address of the loopback at which it listens; default 127.0.0.1. */
  readonly address?: '127.0.0.1' | '::1'
  /** The files of the server; with `isClientVerified` clients need a certificate of the same authority. */
  readonly tls?: TestCertificates & { readonly isClientVerified?: boolean }
  /** More lines of the server's configuration, who it lets in for example (see usersConfig); else everybody. */
  readonly config?: string
  /** Files beside it, by name, which these lines may include. */
  readonly files?: Readonly<Record<string, string>>
  /** Variables that its environment has beside this process's. */
  readonly env?: Readonly<Record<string, string>>
}

/**
 * Starts the real nats-server (see findNatsServer) and waits until it accepts connections. Stop it in the test's teardown.
 *
 * @throws Error if there is none, or it does not start; the error has what it wrote.
 */
export async function startNatsServer(o: NatsServerOptions = {}): Promise<NatsServer> {
  const path = findNatsServer()
  if (path === undefined) throw new Error('no nats-server is found; see withoutNatsServer')
  const folder = await mkdtemp(join(tmpdir(), 'tutti-nats-'))
  try {
    const start = async (port: number): Promise<NatsServer> => {
      const server = new NatsServer(path, folder, port, o)
      await server.restart()
      return server
    }
    return await (o.port === undefined ? onFreePort(start) : start(o.port))
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

/** A nats-server of its own on the loopback, with default limits and without JetStream. */
export class NatsServer {
  readonly port: number
  /** `nats://127.0.0.1:port`, `nats://[::1]:port`, or `tls://localhost:port`. */
  readonly url: string
  readonly #path: string
  readonly #folder: string
  readonly #options: NatsServerOptions
  #process: StartedProcess | undefined

  constructor(path: string, folder: string, port: number, o: NatsServerOptions) {
    this.#path = path
    this.#folder = folder
    this.#options = o
    this.port = port
    this.url = o.tls === undefined ? `nats://${placeOf(port, o)}` : `tls://localhost:${port}`
  }

  get pid(): number {
    return this.#running().pid
  }

  /** Lines that it logged since it was last started. */
  get lines(): readonly string[] {
    return this.#running().lines
  }

  /** Kills it with SIGKILL and waits for its end. The port stays its own. */
  async kill(): Promise<void> {
    await this.#process?.stop('SIGKILL')
  }

  /** Starts it again on the same port, after killing it if it runs; resolves when it accepts connections. */
  async restart(): Promise<void> {
    await this.kill()
    const text = configText(this.port, this.#options)
    await this.#write({ ...this.#options.files, 'nats.conf': text })
    this.#process = await startProcess(this.#path, ['--config', join(this.#folder, 'nats.conf')], {
      env: { ...env, ...this.#options.env },
      readyWhen: (line) => line.includes('Server is ready'),
    })
  }

  /** Gives it other files and has it read them, without a restart; resolves when it has. */
  async reload(files: Readonly<Record<string, string>>): Promise<void> {
    await this.#write(files)
    const reloads = (): number => this.lines.filter((line) => RELOADED.test(line)).length
    const before = reloads()
    this.#running().kill('SIGHUP')
    await this.waitForLine((line) => RELOADED.test(line) && reloads() > before)
  }

  /** A line of its log, of those that were written since it was last started, or will be. */
  waitForLine(fits: (line: string) => boolean): Promise<string> {
    return this.#running().waitForLine(fits)
  }

  /** Holds it with SIGSTOP: connections stay open, and nothing moves. */
  pause(): void {
    const { pid } = this.#running()
    this.#running().kill('SIGSTOP')
    // The kernel stops the threads one after the other; until the last one is, the server may still answer.
    while (!isStopped(pid)) {}
  }

  resume(): void {
    this.#running().kill('SIGCONT')
  }

  /** Ends it and removes its configuration. Fine to call again. */
  async stop(): Promise<void> {
    // A server that is paused takes no other signal.
    this.#process?.kill('SIGCONT')
    await this.#process?.stop()
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #write(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, text] of Object.entries(files)) {
      await writeFile(join(this.#folder, name), text)
    }
  }

  #running(): StartedProcess {
    if (this.#process === undefined) throw new Error('the nats-server was never started')
    return this.#process
  }
}

const RELOADED = /Reloaded server configuration/

function placeOf(port: number, { address = '127.0.0.1' }: NatsServerOptions): string {
  return hostPort(address, port)
}

function configText(port: number, o: NatsServerOptions): string {
  const lines = [`listen: "${placeOf(port, o)}"`]
  if (o.tls !== undefined) lines.push(tlsConfig(o.tls))
  if (o.config !== undefined) lines.push(o.config)
  return `${lines.join('\n')}\n`
}

function tlsConfig(tls: TestCertificates & { readonly isClientVerified?: boolean }): string {
  const files = { cert_file: tls.certFile, key_file: tls.keyFile, ca_file: tls.caFile }
  return `tls ${JSON.stringify({ ...files, verify: tls.isClientVerified ?? false })}`
}

/** True once the kernel says of every thread that it is stopped; where there is no /proc, at once. */
function isStopped(pid: number): boolean {
  const tasks = `/proc/${pid}/task`
  if (!existsSync(tasks)) return true
  return readdirSync(tasks).every((task) => {
    const stat = readFileSync(`${tasks}/${task}/stat`, 'utf8')
    return stat.charAt(stat.lastIndexOf(')') + 2) === 'T'
  })
}
